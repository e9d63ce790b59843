"""What is shipped for a container fits the project: files, commands, variables, users."""

from __future__ import annotations

import os
import re
import ssl
import stat
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from celery import Celery
from django.conf import settings
from django.core.management import get_commands
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agentweb.lock_files import read_pins
from agentweb.management.readme_tables import read_settings
from agentweb.serving.heartbeat import LASTS
from conversations.conf import Conf
from conversations.operations.redis_address import connect_redis, find_number, make_broker
from conversations.runtime.process import GRACE
from tests.support import servers
from tests.support.compose_file import filled, read
from tests.test_project import ROOT

DEPLOY = ROOT / "agentweb" / "deploy"
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
EXAMPLE = (DEPLOY / "example.env").read_text(encoding="utf-8")
WHOLE = read(COMPOSE)
SERVICES: dict[str, Any] = WHOLE["services"]
OURS = ("web", "worker", "beat", "emulator")
TOOLS = ("backup", "restore")
MANIFESTS = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")))
ASKED = set(re.findall(r"\$\{(\w+)", COMPOSE))


def steps(word: str) -> list[str]:
    """Give the arguments of every such instruction of the Dockerfile."""
    joined = DOCKERFILE.replace("\\\n", " ")
    return re.findall(rf"^{word} +(.*)$", joined, re.MULTILINE)


def test_all_that_the_image_copies_is_there_and_reaches_the_builder() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sources = [name for step in steps("COPY") for name in step.split()[:-1]]
    assert [name for name in sources if not (ROOT / name).exists()] == []
    assert ignored[1] == "*"
    assert [name for name in sources if f"!{name}" not in ignored] == []


def test_the_image_holds_every_folder_of_code() -> None:
    needed = {"manage.py", "agentweb", "conversations", "tools", "templates", "static"}
    # `manage.py sbom` reads them, and `doctor`.
    needed |= {"pyproject.toml", "requirements.lock"}
    assert needed <= {name for step in steps("COPY") for name in step.split()}


def test_the_image_runs_as_nobody_special_and_tells_its_health() -> None:
    assert steps("USER") == ["10001"]
    assert "--require-hashes" in DOCKERFILE
    assert "/healthz/live" in steps("HEALTHCHECK")[0]
    assert steps("EXPOSE") == ["8000"]


def test_the_image_serves() -> None:
    assert steps("ENTRYPOINT") == ['["python", "manage.py"]']
    assert steps("CMD") == ['["serve", "--host", "0.0.0.0"]']


@pytest.mark.parametrize("extra", ["metrics", "telemetry", "storages"])
def test_an_extra_of_the_image_is_whole(extra: str) -> None:
    """What the builder picks from the lock for development is all that the extra brings."""
    [line] = [line for line in steps("ARG") if line.startswith(f"{extra.upper()}=")]
    picked = set(line.partition("=")[2].strip('"').split())
    runtime, dev = read_pins(ROOT / "requirements.lock"), read_pins(ROOT / "requirements-dev.lock")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    todo = [Requirement(text).name for text in project["optional-dependencies"][extra]]
    needed: set[str] = set()
    while todo:
        name = canonicalize_name(todo.pop())
        if name not in needed | set(runtime):
            needed.add(name)
            found = [Requirement(text) for text in metadata.requires(name) or []]
            todo += [
                one.name for one in found if not one.marker or one.marker.evaluate({"extra": ""})
            ]
    assert picked == needed
    assert picked <= set(dev)


@pytest.mark.parametrize("extras", ["", "metrics", "metrics telemetry storages"])
def test_the_builder_picks_whole_entries(extras: str, tmp_path: Path) -> None:
    """The step of the Dockerfile, run by a shell on the real lock, up to the download."""
    [step] = [step for step in steps("RUN") if "awk" in step]
    variables = {name: value.strip('"') for name, _, value in
                 (line.partition("=") for line in steps("ARG"))}  # fmt: skip
    script = step.partition("&& pip")[0].replace("/build/requirements-dev.lock", "lock")
    (tmp_path / "lock").write_bytes((ROOT / "requirements-dev.lock").read_bytes())
    environment = {**os.environ, **variables, "EXTRAS": extras}
    script = script.replace("/build/extras.lock", "extras.lock")
    subprocess.run(["sh", "-euc", script], check=True, cwd=tmp_path, env=environment)
    names = [name for word in extras.split() for name in variables[word.upper()].split()]
    found = read_pins(tmp_path / "extras.lock")
    dev = read_pins(ROOT / "requirements-dev.lock")
    assert found == {name: dev[name] for name in names}
    text = (tmp_path / "extras.lock").read_text()
    assert text.count("--hash=sha256:") >= len(names)


def test_compose_has_all_services_and_scales_the_web() -> None:
    assert set(SERVICES) == {"database", "redis", *OURS, *TOOLS}
    assert SERVICES["web"]["deploy"] == {"replicas": 2}
    [published] = filled(SERVICES["web"]["ports"], {})
    first, last = re.findall(r":(\d+)-(\d+):8000$", published)[0]
    assert int(last) - int(first) + 1 == 2
    assert published.startswith("127.0.0.1:")


@pytest.mark.parametrize("name", OURS)
def test_a_service_runs_a_command_that_exists_with_little_rights(name: str) -> None:
    service = SERVICES[name]
    assert service["command"][0] in get_commands()
    assert "entrypoint" not in service
    assert (service["image"], service["read_only"], service["cap_drop"]) == (
        "agentweb", True, ["ALL"],
    )  # fmt: skip
    assert service["tmpfs"] == ["/tmp"]
    assert service["volumes"] == ["data:/data"]
    assert set(WHOLE["volumes"]) == {"data", "database"}


@pytest.mark.parametrize("name", [*OURS, *TOOLS])
def test_a_service_gives_only_variables_that_are_read(name: str) -> None:
    known = {row.name for row in read_settings()}
    assert set(SERVICES[name]["environment"]) - known == set()


def test_only_who_migrates_is_given_the_owner_of_the_tables() -> None:
    for name in (*OURS, *TOOLS):
        words = str(
            filled(SERVICES[name], dict.fromkeys(ASKED, "x") | {"POSTGRES_PASSWORD": "own"})
        )
        assert ("own@" in words) is (name in {"web", *TOOLS})
        assert SERVICES[name]["environment"]["AGENTWEB_RUN_TURNS_IN"] == "worker"


def test_the_example_names_what_compose_asks_for() -> None:
    assert set(re.findall(r"^([A-Z_]+)=", EXAMPLE, re.MULTILINE)) == ASKED


@pytest.mark.parametrize(
    "name", ["POSTGRES_PASSWORD", "DATABASE_APP_PASSWORD", "REDIS_PASSWORD", "SECRET_KEY"]
)
def test_what_must_be_set_is_asked_for(name: str) -> None:
    with pytest.raises(KeyError, match=name):
        filled(WHOLE, dict.fromkeys(ASKED - {name}, "x"))


def test_a_stop_waits_for_the_drain() -> None:
    drains = {"web": Conf.drain_seconds, "worker": Conf.worker_drain_seconds}
    pods = {pod["metadata"]["name"]: pod for pod in MANIFESTS if pod["kind"] == "Deployment"}
    for name, drain in drains.items():
        pod = pods[f"agentweb-{name}"]["spec"]["template"]["spec"]
        unit = (DEPLOY / "systemd" / f"agentweb-{name}@.service").read_text()
        for seconds in (
            SERVICES[name]["stop_grace_period"].removesuffix("s"),
            pod["terminationGracePeriodSeconds"],
            re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)[0],
        ):
            assert int(seconds) > drain + GRACE + 10


def test_what_waits_waits_for_health() -> None:
    healthy = {"condition": "service_healthy"}
    assert SERVICES["web"]["depends_on"] == {"database": healthy, "redis": healthy}
    for name in ("worker", "beat"):
        assert SERVICES[name]["depends_on"]["web"] == healthy
    for name in ("database", "redis"):
        assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"


@pytest.mark.parametrize("name", ["worker", "beat"])
def test_health_is_a_sign_that_is_fresh(name: str, tmp_path: Path) -> None:
    """The check of the container, run by a shell on a sign in another folder."""
    [_, check] = filled(SERVICES[name]["healthcheck"]["test"], {})
    assert f"-lt {LASTS}" in check
    sign = tmp_path / f"agentweb-{name}.alive"
    command = ["sh", "-c", check.replace("/tmp/", f"{tmp_path}/")]
    sign.write_text("now")
    assert subprocess.run(command, check=False).returncode == 0
    os.utime(sign, (0, 0))
    assert subprocess.run(command, check=False).returncode != 0
    sign.unlink()
    assert subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode != 0


def test_the_emulator_is_there_only_to_try() -> None:
    emulator = SERVICES["emulator"]
    assert emulator["profiles"] == ["emulator"]
    assert emulator["network_mode"] == "service:worker"
    apart = {name: SERVICES[name]["profiles"] for name in SERVICES if "profiles" in SERVICES[name]}
    assert apart == {"emulator": ["emulator"], "backup": ["tools"], "restore": ["tools"]}


def test_the_build_context_is_the_project() -> None:
    assert (DEPLOY / SERVICES["web"]["build"]["context"]).resolve() == ROOT


def test_the_role_of_the_app_is_made_with_the_database() -> None:
    script = DEPLOY / "app-role.sh"
    assert (
        f"./{script.name}:/docker-entrypoint-initdb.d/{script.name}:ro"
        in (SERVICES["database"]["volumes"])
    )
    subprocess.run(["sh", "-n", script], check=True)
    assert "agentweb_app:" in SERVICES["web"]["environment"]["DATABASE_URL"]
    assert "CREATE ROLE agentweb_app LOGIN NOSUPERUSER" in script.read_text()


@pytest.mark.parametrize("name", TOOLS)
def test_backup_and_restore_are_services(name: str) -> None:
    service = filled(SERVICES[name], dict.fromkeys(ASKED, "x"))
    assert service["command"][:2] == [name, "/backups/x"]
    assert service["volumes"] == ["data:/data", "./backups:/backups"]
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])


def test_the_password_of_redis_is_asked_for_and_in_no_argument(tmp_path: Path) -> None:
    """The command of the container, run by a shell with a stand-in that says what it is given."""
    stand_in = tmp_path / "redis-server"
    stand_in.write_text('#!/bin/sh\necho "arguments: $*"; cat\n')
    stand_in.chmod(0o755)
    command = filled(SERVICES["redis"]["command"], {})
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "REDISCLI_AUTH": "pass-word"}
    done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    arguments, _, read = done.stdout.partition("\n")
    assert "pass-word" not in arguments
    assert read == "requirepass pass-word\n"


@pytest.mark.parametrize("path", sorted(DEPLOY.rglob("*.yaml")), ids=lambda path: path.name)
def test_no_key_is_given_twice(path: Path) -> None:
    """`kubectl apply` refuses a manifest with one, which a parser of YAML takes without a word."""
    todo: list[yaml.Node] = list(yaml.compose_all(path.read_text(encoding="utf-8")))
    twice: list[str] = []
    while todo:
        node = todo.pop()
        if isinstance(node, yaml.MappingNode):
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            twice += [
                f"line {node.start_mark.line}: {key}" for key in {*keys} if keys.count(key) > 1
            ]
            todo += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            todo += node.value
    assert twice == []


@pytest.mark.parametrize("pod", [pod for pod in MANIFESTS if pod["kind"] == "Deployment"])
def test_a_pod_runs_a_command_that_exists_with_little_rights_and_settings_that_are_read(
    pod: Any,
) -> None:
    spec = pod["spec"]["template"]["spec"]
    [container] = spec["containers"]
    assert container["args"][0] in get_commands()
    assert spec["securityContext"]["runAsNonRoot"]
    assert container["securityContext"] == {
        "readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    # Else Kubernetes adds AGENTWEB_PORT=tcp://... for the service of that name.
    assert spec["enableServiceLinks"] is False
    given = {row["secretRef"]["name"] for row in container["envFrom"] if "secretRef" in row}
    assert ("agentweb-owner" in given) is (container["name"] == "web")
    assert pod["spec"]["selector"]["matchLabels"] == pod["spec"]["template"]["metadata"]["labels"]
    [settings] = [one["data"] for one in MANIFESTS if one["kind"] == "ConfigMap"]
    assert set(settings) - {row.name for row in read_settings()} == set()
    if container["name"] != "web":
        # The sign of life of the compose file, which is run by a test of its own.
        [_, check] = filled(SERVICES[container["name"]]["healthcheck"]["test"], {})
        assert container["livenessProbe"]["exec"]["command"] == ["sh", "-c", check]


@pytest.mark.parametrize("unit", sorted((DEPLOY / "systemd").iterdir()), ids=lambda one: one.name)
def test_a_unit_is_sound(unit: Path) -> None:
    text = unit.read_text()
    assert re.search(r"^\[Install\]\nWantedBy=", text, re.MULTILINE)
    for command in re.findall(r"manage.py (\w+)", text):
        assert command in get_commands()
    for name in re.findall(r"agentweb-\w+@?", text.partition("Wants=agentweb")[2]):
        assert (DEPLOY / "systemd" / f"{name}.service").exists()


def test_the_celery_app_reads_djangos_settings() -> None:
    from agentweb.celery import app

    assert app.conf.broker_url == settings.CELERY_BROKER_URL
    assert app.conf.task_ignore_result is True


def broker(address: str) -> Any:
    """Return Celery's connection for an address of Redis."""
    url, options = make_broker(address)
    app = Celery("tried", broker=url, set_as_current=False)
    app.conf.broker_transport_options = options
    return app.connection_for_write()


def test_tasks_go_through_a_socket_of_this_machine_too() -> None:
    server = servers.start_redis("--unixsocket", "redis.sock", "--unixsocketperm", "777")
    address = f"unix://{server.folder}/redis.sock?db=3"
    with broker(address) as link, connect_redis(address, 5) as redis:
        link.SimpleQueue("tried").put("task")
        assert redis.llen("tried") == 1
    assert find_number(address) == "3"
    server.discard()


def test_a_password_of_a_socket_reaches_the_broker_too() -> None:
    server = servers.start_redis(
        "--unixsocket", "redis.sock", "--unixsocketperm", "777", "--requirepass", "p/w @1"
    )
    address = f"unix://{server.folder}/redis.sock?password=p%2Fw%20%401&socket_timeout=1.5"
    with broker(address) as link, connect_redis(address, 5) as redis:
        link.SimpleQueue("tried").put("task")
        assert redis.llen("tried") == 1
        own = link.default_channel.client.connection_pool.connection_kwargs
        assert own["socket_timeout"] == 1.5
    server.discard()


def test_a_broker_with_tls_is_known_by_its_certificate() -> None:
    link = broker("rediss://:pw@cache.example:6380/2")
    assert (link.ssl, link.virtual_host) == ({"ssl_cert_reqs": ssl.CERT_REQUIRED}, "2")
    link = broker("rediss://cache.example/0?ssl_ca_certs=/etc/ca.pem")
    assert link.ssl == {"ssl_ca_certs": "/etc/ca.pem"}
    address, _ = make_broker("rediss://cache.example/0?protocol=3")
    assert address == "rediss://cache.example/0?ssl_cert_reqs=required"


OPTIONS = "health_check_interval=7&client_name=chats&protocol=3"


@pytest.mark.parametrize("place", ["port", "socket"])
def test_options_of_the_address_reach_the_broker_too(place: str) -> None:
    server = servers.start_redis("--unixsocket", "redis.sock", "--unixsocketperm", "777")
    socket = f"unix://{server.folder}/redis.sock?db=0"
    address = (
        f"{server.url}?{OPTIONS}&socket_keepalive=true"
        if place == "port"
        else f"{socket}&{OPTIONS}"
    )
    with broker(address) as link, connect_redis(address, 5) as redis:
        link.SimpleQueue("tried").put("task")
        assert redis.llen("tried") == 1
        own = link.default_channel.client.connection_pool.connection_kwargs
        assert (own["health_check_interval"], own["client_name"]) == (7, "chats")
        named = [one["name"] for one in redis.client_list()]
        assert named == ["chats"] * len(named)
    server.discard()


@pytest.mark.parametrize("script", ["manage.py", ".ci/run", "agentweb/deploy/app-role.sh"])
def test_a_script_may_be_run(script: str) -> None:
    assert (ROOT / script).stat().st_mode & stat.S_IXUSR


def test_the_ci_script_is_sound_bash() -> None:
    script = ROOT / ".ci" / "run"
    subprocess.run(["bash", "-n", script], check=True)
    assert "set -euo pipefail" in script.read_text(encoding="utf-8")
    assert os.access(script, os.X_OK)


def test_the_environment_example_is_never_committed_filled_in() -> None:
    ignored = Path(ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {".env", "settings.env"} <= set(ignored)
