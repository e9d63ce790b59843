"""What is shipped for a container fits the project: files, commands, variables, users."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from pathlib import Path

import pytest
from django.conf import settings

from conversations.conf import PREFIX, defaults
from tests.test_project import ROOT, names_read

DEPLOY = ROOT / "agentweb" / "deploy"
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")


def steps(word: str) -> list[str]:
    """Give the arguments of every such instruction of the Dockerfile."""
    joined = DOCKERFILE.replace("\\\n", " ")
    return re.findall(rf"^{word} +(.*)$", joined, re.MULTILINE)


def services() -> dict[str, str]:
    """Split the compose file's services by their indentation."""
    body = COMPOSE.split("\nservices:\n")[1].split("\nvolumes:\n")[0]
    parts = re.split(r"^  ([a-z]+):\n", body, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_all_that_the_image_copies_is_there_and_reaches_the_builder() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sources = [name for step in steps("COPY") for name in step.split()[:-1]]
    assert [name for name in sources if not (ROOT / name).exists()] == []
    assert ignored[1] == "*"
    assert [name for name in sources if f"!{name}" not in ignored] == []


def test_the_image_holds_every_folder_of_code() -> None:
    needed = {"manage.py", "agentweb", "conversations", "tools", "templates", "static"}
    assert needed <= {name for step in steps("COPY") for name in step.split()}


def test_the_image_runs_as_nobody_special_and_tells_its_health() -> None:
    assert steps("USER") == ["agentweb"]
    assert "--require-hashes" in DOCKERFILE
    assert "/healthz/live" in steps("HEALTHCHECK")[0]
    assert steps("EXPOSE") == ["8000"]


def test_the_image_serves() -> None:
    assert steps("ENTRYPOINT") == ['["python", "manage.py"]']
    assert steps("CMD") == ['["serve", "--host", "0.0.0.0"]']


def test_compose_has_the_five_services() -> None:
    assert set(services()) == {"database", "redis", "web", "worker", "beat"}
    assert all("*app" in services()[name] for name in ("web", "worker", "beat"))


@pytest.mark.parametrize("name", ["worker", "beat"])
def test_the_carriers_run_the_celery_app(name: str) -> None:
    assert 'entrypoint: ["celery", "-A", "agentweb.celery"]' in services()[name]
    assert re.search(rf'command: \["{name}"', services()[name])


def test_compose_gives_only_variables_that_are_read() -> None:
    given = set(re.findall(r"^    ([A-Z_]+): ", COMPOSE, re.MULTILINE))
    known = names_read() | {PREFIX + name.upper() for name in defaults()}
    assert given - known == set()


def test_the_example_names_what_compose_asks_for() -> None:
    example = (DEPLOY / "example.env").read_text(encoding="utf-8")
    asked = set(re.findall(r"\$\{([A-Z_]+)", COMPOSE))
    assert set(re.findall(r"^([A-Z_]+)=", example, re.MULTILINE)) == asked


def test_the_build_context_is_the_project() -> None:
    context = re.search(r"context: (\S+)", services()["web"])
    assert context is not None
    assert (DEPLOY / context[1]).resolve() == ROOT


def test_the_celery_app_reads_djangos_settings() -> None:
    from agentweb.celery import app

    assert app.conf.broker_url == settings.CELERY_BROKER_URL
    assert app.conf.task_ignore_result is True


def test_every_scheduled_task_exists() -> None:
    from agentweb.celery import app

    app.loader.import_default_modules()
    wanted = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    assert wanted <= set(app.tasks)


@pytest.mark.parametrize("script", ["manage.py", ".ci/run"])
def test_a_script_may_be_run(script: str) -> None:
    assert (ROOT / script).stat().st_mode & stat.S_IXUSR


def test_the_ci_script_is_sound_bash() -> None:
    script = ROOT / ".ci" / "run"
    subprocess.run(["bash", "-n", script], check=True)
    assert "set -euo pipefail" in script.read_text(encoding="utf-8")
    assert os.access(script, os.X_OK)


def test_the_environment_example_is_never_committed_filled_in() -> None:
    assert ".env" in Path(ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
