"""Starts that are refused: each says what is wrong and what to change."""

from __future__ import annotations

import logging
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import CheckMessage, Tags, run_checks
from django.core.checks.registry import registry
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command, load_command_class
from django.core.management.base import SystemCheckError
from django.db import connection

from agentweb import env
from agentweb.serving import checks, startup
from agentweb.serving.checks import START_CHECKS
from agentweb.serving.host import find_file_system, is_on_network
from conversations.checks import HIGHEST
from conversations.log.triggers import install_guards, list_guarded_tables
from tests.test_project import ROOT

STRONG = "0123456789abcdef" * 4
MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / /srv/shared rw shared:1 - nfs4 server:/export rw
31 30 0:41 / /srv/shared/local rw - xfs /dev/vdb rw
32 22 0:42 / /srv/a\\040b rw - cifs //server/share rw
33 22 0:43 / /srv/shared/twice rw - ext4 /dev/vdc rw
34 22 0:44 / /srv/shared/twice rw - fuse.sshfs server: rw
"""


def found(id: str) -> list[CheckMessage]:
    return [one for one in run_checks() if one.id == f"agentweb.{id}"]


def assert_refused_with(id: str, *words: str) -> None:
    messages = found(id)
    assert messages
    for message in messages:
        assert message.hint
    text = " ".join(f"{one.msg} {one.hint}" for one in messages)
    for word in words:
        assert word in text


def use(monkeypatch: pytest.MonkeyPatch, settings: Any, kind: str, name: str) -> None:
    database = settings.DATABASES["default"]
    monkeypatch.setitem(database, "ENGINE", f"django.db.backends.{kind}")
    monkeypatch.setitem(database, "NAME", name)


def test_a_sound_site_is_not_refused(settings: Any) -> None:
    settings.HTTPS, settings.SECRET_KEY = True, STRONG
    settings.ALLOWED_HOSTS = ["chat.example.org"]
    own = [one for one in run_checks() if (one.id or "").startswith("agentweb.")]
    assert own == []


@pytest.mark.parametrize("key", ["", "short", "a" * 64, "django-insecure-" + STRONG,
                                 "please-change-me-please-change-me-1234"])  # fmt: skip
def test_a_weak_key_is_refused_with_https(key: str, settings: Any) -> None:
    settings.SECRET_KEY_FALLBACKS = []
    settings.HTTPS = True
    settings.SECRET_KEY = STRONG
    assert found("E010") == []
    if key:
        settings.SECRET_KEY = key
        assert_refused_with("E010", "SECRET_KEY", "openssl rand -hex 32")
        assert key not in str(found("E010"))
    assert checks.is_weak(key)


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [("TRASH_DAYS", (0, 36_500), ""), ("TRASH_DAYS", (-1, 36_501, 999_999), "0 to 36,500"),
     ("PROCESS_TURNS", (1, 10**17), ""), ("PROCESS_TURNS", (0, -1), "1 or more"),
     ("LEASE_SECONDS", (0, 10**17), "1 to 3,153,600,000"), ("SESSION_HOURS", (-3,), "0 to 876,000"),
     ("PINNED_PERCENT", (101,), "0 to 100"), ("LOOP_BLOCK_MS", (-1, 10**17), "0 to 3,153,600,")],
)  # fmt: skip
def test_a_number_that_means_nothing_is_refused(
    name: str, values: tuple[int, ...], said: str, settings: Any
) -> None:
    for value in values:
        setattr(settings, f"AGENTWEB_{name}", value)
        if said:
            assert_refused_with("E002", f"AGENTWEB_{name} is {value:,}.", said)
        else:
            assert found("E002") == []


def test_dates_can_be_computed_with_the_highest_numbers() -> None:
    for unit in ("seconds", "minutes", "hours", "days"):
        age = timedelta(**{unit: HIGHEST[unit]})
        assert datetime.now(UTC) - age < datetime.now(UTC) + age


def test_every_host_is_refused(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["localhost", "*"]
    assert_refused_with("E011", "AGENTWEB_HOSTS")


@pytest.mark.parametrize(
    "name", ["https://chat.example.org", "chat.example.org/", "chat.example.org:8443",
             "*.example.org", "::1", "chat example.org", "münchen.example"],
)  # fmt: skip
def test_a_host_that_no_request_can_name_is_refused(name: str, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["chat.example.org", ".example.org", "[::1]", "10.0.0.1", "Chat.lan"]
    assert found("E019") == []
    settings.ALLOWED_HOSTS = [name]
    assert_refused_with("E019", "AGENTWEB_HOSTS", name, ".example.org")


@pytest.mark.parametrize(
    ("name", "sound", "wrong", "id"),
    [("OFFERED_POLICIES", ((), ("adaptive", "off")), ("adaptive", "classical"), "E003"),
     ("WEB_SEARCH_COUNTRY", ("", "DE"), "Germany", "E007")],
)  # fmt: skip
def test_a_word_that_means_nothing_is_refused(
    name: str, sound: Any, wrong: Any, id: str, settings: Any
) -> None:
    for value in sound:
        setattr(settings, f"AGENTWEB_{name}", value)
        assert found(id) == []
    setattr(settings, f"AGENTWEB_{name}", wrong)
    assert_refused_with(id, f"AGENTWEB_{name}", wrong if isinstance(wrong, str) else wrong[-1])


@pytest.mark.parametrize(
    "sender",
    ["Chat, Inc. <chat@example.org>", "chat@", "a@b.org, c@d.org", "chat", "Chat <chat>",
     "@example.org", "the chat@example.org"],
)  # fmt: skip
def test_a_sender_that_is_no_address_is_refused(sender: str, settings: Any) -> None:
    for sound in ("agentweb@localhost", "Chat <chat@example.org>", "Büro <büro@example.org>"):
        settings.DEFAULT_FROM_EMAIL = sound
        assert found("E021") == []
    settings.DEFAULT_FROM_EMAIL = sender
    assert_refused_with("E021", "AGENTWEB_MAIL_FROM", "Chat <chat@example.org>")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("AGENTWEB_TRUSTED_PROXY", "AGENTWEB_TRUSTED_PROXIES"),
     ("AGENTWEB_MAX_TURN_SECOND", "AGENTWEB_MAX_TURN_SECONDS"),
     ("AGENTWEB_DATABASE_URL", "DATABASE_URL"), ("AGENTWEB_SECRET_KEY", "SECRET_KEY"),
     ("AGENTWEB_FETCH_PRIVATE", "AGENTWEB_FETCH_PRIVATE_HOSTS"),
     ("AGENTWEB_SERVICE_PORT_HTTP", ""), ("AGENTWEB_SECRETS_KEY_FILE", ""),
     ("AGENTWEB_PORT", ""), ("AGENTWEB_PORT_8000_TCP_ADDR", ""), ("AGENTWEB_HOSTS_FILE", "")],
)  # fmt: skip
def test_a_misspelt_setting_is_warned_of(
    name: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found("W019") == []
    monkeypatch.setenv(name, "hunter2")
    if meant:
        assert_refused_with("W019", f"{name} is no setting", f"mean {meant}?")
    assert len(found("W019")) == bool(meant)
    assert "hunter2" not in str(found("W019"))


def test_a_tool_switched_off_by_a_name_that_no_tool_has_is_warned_of(settings: Any) -> None:
    settings.AGENTWEB_DISABLED_TOOLS = ("fetch_url", "web_search", "mcp__wiki__search")
    assert found("W003") == []
    settings.AGENTWEB_DISABLED_TOOLS = ("fetch_url", "fetch_urls", "mcp_wiki", "teleport")
    assert_refused_with("W003", "fetch_urls, which is no tool", "mean fetch_url?", "teleport")
    assert len(found("W003")) == 3


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/home/x", "ext4"), ("/srv/shared", "nfs4"), ("/srv/shared/a/b", "nfs4"),
     ("/srv/shared/local/x", "xfs"), ("/srv/a b/x", "cifs"), ("/srv/shared/twice", "fuse.sshfs"),
     ("/srv/sharedbutnot", "ext4")],
)  # fmt: skip
def test_a_file_system_is_known_by_its_nearest_mount(path: str, kind: str) -> None:
    assert find_file_system(Path(path), MOUNTS) == kind
    assert is_on_network(Path(path), MOUNTS) is (kind not in {"ext4", "xfs"})


def test_where_the_machine_names_no_mounts_none_is_a_network(tmp_path: Path) -> None:
    assert not is_on_network(tmp_path, "")
    assert not is_on_network(tmp_path, "nonsense\n1 2 3 - x")


def test_sqlite_on_a_network_file_system_is_refused(
    settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    monkeypatch.setattr("agentweb.serving.host.MOUNTS", mounts)
    use(monkeypatch, settings, "sqlite3", "/srv/shared/a/b")
    assert_refused_with("E012", "nfs4", "AGENTWEB_DATA_DIR", "DATABASE_URL")


@pytest.fixture
def loud() -> Iterator[logging.Logger]:
    logger = logging.getLogger("httpx2")
    level = logger.level
    logger.setLevel(logging.DEBUG)
    yield logger
    logger.setLevel(level)


def test_a_logger_that_would_tell_prompts_is_refused(loud: logging.Logger) -> None:
    assert_refused_with("E013", loud.name, "AGENTWEB_LOG_LEVEL")


def test_a_root_logger_at_debug_is_refused() -> None:
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.DEBUG)
    try:
        assert_refused_with("E013", "root")
    finally:
        root.setLevel(level)


def test_the_sdks_own_switch_for_debug_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_LOG", "debug")
    assert_refused_with("E013", "Unset ANTHROPIC_LOG")


def test_another_major_version_of_the_sdk_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentweb.serving.checks.metadata.version", lambda name: "3.0.1")
    assert_refused_with("E014", "3.0.1", "requirements.lock")


def test_an_extra_that_is_wanted_and_not_there_is_named(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.METRICS = True
    assert found("E015") == []
    monkeypatch.setattr("agentweb.serving.checks.util.find_spec", lambda name: None)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extra in ("metrics", "telemetry"):
        needed = project["optional-dependencies"][extra]
        packages = " ".join(one.partition(">")[0] for one in needed)
        pip = Path(sys.prefix) / "bin" / "pip"
        assert_refused_with("E015", f"{pip} install {packages} (of an image: EXTRAS={extra})")


def test_turns_in_workers_need_redis_postgresql_and_a_model(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.AGENTWEB_RUN_TURNS_IN = "worker"
    settings.REDIS_URL = settings.ANTHROPIC_API_KEY = settings.ANTHROPIC_BASE_URL = ""
    use(monkeypatch, settings, "sqlite3", "/x/y")
    assert_refused_with(
        "E017", "REDIS_URL", "DATABASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
    )
    settings.REDIS_URL, settings.ANTHROPIC_BASE_URL = "redis://localhost", "http://localhost:1"
    use(monkeypatch, settings, "postgresql", "y")
    assert found("E017") == []
    settings.AGENTWEB_RUN_TURNS_IN = "everywhere"
    assert_refused_with("E016", "everywhere", "web or worker")


def test_a_short_token_for_figures_is_warned_of(settings: Any) -> None:
    settings.METRICS, settings.METRICS_TOKEN = True, "guess"
    assert_refused_with("W018", "AGENTWEB_METRICS_TOKEN")
    assert "guess" not in str(found("W018"))


def test_what_is_like_no_setting_is_warned_of_and_where_they_all_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AGENTWEB_SILENCE_SECONDS", "9")
    monkeypatch.setenv("OTHER_PROGRAM", "9")
    assert_refused_with("W019", "AGENTWEB_SILENCE_SECONDS is", "agentweb/README.md")
    assert len(found("W019")) == 1


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "chat.example.org"])
def test_a_public_address_is_not_for_debugging_or_a_weak_key(host: str, settings: Any) -> None:
    settings.SECRET_KEY = STRONG
    startup.demand_fit_address(host)
    settings.DEBUG = True
    with pytest.raises(CommandError, match="AGENTWEB_DEBUG"):
        startup.demand_fit_address(host)
    settings.DEBUG, settings.SECRET_KEY = False, "weak"
    with pytest.raises(CommandError, match="SECRET_KEY"):
        startup.demand_fit_address(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_this_machine_may_be_debugged(host: str, settings: Any) -> None:
    settings.DEBUG, settings.SECRET_KEY = True, "weak"
    startup.demand_fit_address(host)


@pytest.mark.django_db
def test_a_worker_refuses_a_database_that_lacks_migrations(monkeypatch: pytest.MonkeyPatch) -> None:
    startup.demand_ready_database()
    from django.db.migrations.recorder import MigrationRecorder

    MigrationRecorder.Migration.objects.filter(app="conversations").order_by("-name")[0].delete()
    with pytest.raises(CommandError, match=r"lacks 1 migrations.*`manage.py migrate`"):
        startup.demand_ready_database()


@pytest.mark.django_db
def test_missing_triggers_are_refused_by_the_names_of_their_tables() -> None:
    table = list_guarded_tables()[0]
    where = f' ON "{table}"' if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(f'DROP TRIGGER "{table}_keep_update"{where}')
    with pytest.raises(CommandError, match=rf"{table};.*manage.py migrate"):
        startup.demand_ready_database()
    install_guards()
    startup.demand_ready_database()


@pytest.mark.django_db
def test_a_pool_that_the_server_could_not_give_is_refused(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(startup, "read_max_connections", lambda: 20)
    monkeypatch.setattr(startup.connection, "vendor", "postgresql")
    settings.DATABASE_POOL = 10
    startup.demand_room()
    settings.DATABASE_POOL = 11
    with pytest.raises(CommandError, match="AGENTWEB_DATABASE_POOL is 11"):
        startup.demand_room()


@pytest.mark.parametrize(
    "url", ["redis://localhost", "redis://:p%40ss@10.0.0.1:6379/3", "rediss://cache.example/0",
            "unix:///run/redis.sock", "redis+sentinel://a/chats",
            "redis+sentinel://me:p%40ss@[::1]:5,b.example:26379/chats/3?sentinel_password=x"],
)  # fmt: skip
def test_an_address_of_redis_is_read(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", url)
    assert env.redis("REDIS_URL") == url


@pytest.mark.parametrize(
    "url", ["localhost:6379", "http://localhost", "redis://", "redis://:hunter2@", "redis:hunter2",
            "redis://host:hunter2/0", "redis://host:6379/hunter2", "redis://[::1/hunter2", "6379",
            "redis+sentinel://hunter2", "redis+sentinel://a:hunter2/chats",
            "redis+sentinel://:hunter2@/chats", "redis+sentinel://a/chats/hunter2",
            "redis+sentinel://:hunter2@a,/chats", "redis+sentinel://a:0/hunter2"],
)  # fmt: skip
def test_another_address_is_refused_without_its_password(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", url)
    with pytest.raises(ImproperlyConfigured, match=r"^REDIS_URL: use redis://") as error:
        env.redis("REDIS_URL")
    assert "hunter2" not in str(error.value)


def test_a_word_that_is_no_choice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert env.choice("AGENTWEB_LOG_FORMAT", ("line", "json")) == "line"
    monkeypatch.setenv("AGENTWEB_LOG_FORMAT", "xml")
    with pytest.raises(ImproperlyConfigured, match=r"AGENTWEB_LOG_FORMAT.*line, json"):
        env.choice("AGENTWEB_LOG_FORMAT", ("line", "json"))


def test_the_deployment_check_has_nothing_to_say(settings: Any) -> None:
    settings.HTTPS = settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_HSTS_SECONDS = 31_536_000
    settings.SECURE_HSTS_INCLUDE_SUBDOMAINS = settings.SECURE_HSTS_PRELOAD = True
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    settings.SECRET_KEY = STRONG
    call_command("check", deploy=True, fail_level="WARNING")


def test_each_of_the_site_s_own_checks_is_made_at_a_start_or_with_the_database() -> None:
    own = [
        check for check in registry.get_checks()
        if check.__module__.startswith(("agentweb.", "conversations."))
    ]  # fmt: skip
    assert len(own) > 10
    for check in own:
        assert {*START_CHECKS, Tags.database}.intersection(check.tags), check


@pytest.mark.parametrize("name", ["serve", "worker", "beat"])
def test_a_start_is_refused_by_a_check_of_its_settings(name: str, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    command = load_command_class("agentweb", name)
    with pytest.raises(SystemCheckError, match=r"agentweb\.E011"):
        command.check(tags=command.requires_system_checks)
