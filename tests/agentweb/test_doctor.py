"""The doctor: every finding provoked, in words that say what to change and hold no secret."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.utils import timezone

from agentweb.celery import worker_init
from agentweb.doctor import database, host, model, scaled_out, site_settings, stored_data
from agentweb.doctor.report_lines import Line, exit_code, ok, run_check
from agentweb.emulator import server as emulator
from agentweb.serving import heartbeat, worker_loop
from conversations.log.triggers import list_guarded_tables
from conversations.models import ApiModel, BudgetWindow, Turn
from conversations.operations.redis_address import connect_redis
from tests.support import people_and_turns, servers

pytestmark = pytest.mark.django_db
STRONG = "0123456789abcdef" * 4


def found(check: Callable[[], Iterable[Line]], name: str) -> tuple[str, str]:
    """Give the worst state a check found for a name, and its words."""
    lines = [line for line in run_check(check) if line.name == name]
    assert all(line.hint for line in lines if line.state != "ok")
    worst = max(lines, key=lambda line: ("ok", "warn", "failed").index(line.state), default=None)
    return (worst.state, f"{worst.text} {worst.hint}") if worst else ("", "")


def run(*words: str) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("doctor", *words, stdout=out)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue()
    return 0, out.getvalue()


@pytest.fixture(autouse=True)
def sound(settings: Any, tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    settings.DATA_DIR = folder
    settings.AGENTWEB_TITLE_MODEL = "off"
    yield folder
    folder.chmod(0o700)


def test_a_sound_site_has_nothing_that_failed() -> None:
    code, text = run()
    assert (code, text.count("FAILED")) == (0, 0)
    assert text.splitlines()[-1].endswith(" 0 failed")


def test_it_prints_json_and_its_code_is_that_of_the_worst(settings: Any) -> None:
    settings.SECRET_KEY = "hunter2"
    code, text = run("--json")
    told = json.loads(text)
    assert (code, told["failed"]) == (1, 1)
    [line] = [line for line in told["lines"] if line["state"] == "failed"]
    assert set(line) == {"name", "state", "text", "hint"}
    assert line["name"] == "SECRET_KEY"
    assert "hunter2" not in text


def test_a_look_that_breaks_is_a_finding_without_its_words() -> None:
    def weather() -> Iterable[Line]:
        yield ok("rain", "none")
        raise OperationalError("password hunter2")

    lines = run_check(weather)
    assert [line.state for line in lines] == ["ok", "failed"]
    assert "OperationalError" in lines[1].text
    assert "hunter2" not in str(lines[1])
    assert exit_code(lines) == 1
    assert exit_code(lines[:1]) == 0


def test_an_old_python_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "OLDEST", (99, 0))
    assert found(host.check_python, "python")[0] == "failed"


def test_packages_of_another_version_are_named(settings: Any, tmp_path: Path) -> None:
    assert found(host.check_packages, "packages")[0] == "ok"
    settings.BASE_DIR = tmp_path
    state, text = found(host.check_packages, "packages")
    assert (state, text) == ("ok", "there is no lock to compare them with ")
    (tmp_path / host.LOCK).write_text("django==1.0\nabsent==2.0\n")
    state, text = found(host.check_packages, "packages")
    assert state == "warn"
    assert "1 are not of the lock: django 5" in text


def test_a_data_folder_others_may_enter_or_nobody_made(
    sound: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found(host.check_data_folder, "data folder") == ("ok", f"{sound} ")
    sound.chmod(0o755)
    assert found(host.check_data_folder, "data folder")[0] == "warn"
    key = sound / "secret_key"
    key.write_text("x")
    key.chmod(0o644)
    assert found(host.check_data_folder, "secret key")[0] == "failed"
    # Root may write everywhere, so the answer is asked for.
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert found(host.check_data_folder, "data folder")[0] == "failed"
    settings.DATA_DIR = sound / "nowhere"
    assert found(host.check_data_folder, "data folder")[0] == "failed"


def test_a_network_file_system_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "is_on_network", lambda path: True)
    assert found(host.check_data_folder, "data folder")[0] == "warn"


@pytest.mark.parametrize(
    ("free", "state"), [(2_000_000_000, "ok"), (500_000_000, "warn"), (1_000_000, "failed")]
)
def test_a_disk_that_fills_up(free: int, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host.shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    assert found(host.check_disk, "disk")[0] == state


def test_a_database_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def down() -> None:
        raise OperationalError("host 10.0.0.1")

    assert found(database.check_server, "database")[0] == "ok"
    monkeypatch.setattr(connection, "ensure_connection", down)
    state, text = found(database.check_server, "database")
    assert (state, "10.0.0.1" in text) == ("failed", False)


@pytest.mark.only_database("sqlite", "damages a file of SQLite")
def test_a_damaged_file_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(database.check_server, "database file")[0] == "ok"
    real = connection.cursor

    def spoiled() -> Any:
        cursor = real()
        fetch = cursor.fetchall
        cursor.fetchall = lambda: [("*** in database main ***",)] if fetch() else []
        return cursor

    monkeypatch.setattr(connection, "cursor", spoiled)
    assert found(database.check_server, "database file")[0] == "failed"


@pytest.mark.only_database("sqlite", "asks for the size of a file of SQLite")
def test_a_disk_on_which_no_backup_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database.shutil, "disk_usage", lambda path: SimpleNamespace(free=10))
    real = connection.settings_dict["NAME"]
    monkeypatch.setitem(database.settings.DATABASES["default"], "NAME", real)
    assert found(database.check_server, "database file")[0] == "warn"


@pytest.mark.only_database("postgres", "asks PostgreSQL")
def test_postgresql_that_may_lose_or_forge_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(database.check_server, "durability")[0] == "warn"
    assert found(database.check_server, "database role")[0] == "warn"
    assert found(database.check_server, "connections")[0] == "ok"
    monkeypatch.setattr(database.startup, "read_max_connections", lambda: 5)
    assert found(database.check_server, "connections")[0] == "warn"


def test_a_schema_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(database.check_schema, "migrations")[0] == "ok"
    assert found(database.check_schema, "guards")[0] == "ok"

    def full() -> None:
        raise CommandError("AGENTWEB_DATABASE_POOL is 500")

    with monkeypatch.context() as patch:
        patch.setattr(database.startup, "demand_room", full)
        assert found(database.check_schema, "pool")[0] == "failed"
    with monkeypatch.context() as patch:
        missing = ["conversations.0099_x"]
        patch.setattr(database.startup, "list_unapplied_migrations", lambda: missing)
        assert found(database.check_schema, "migrations")[0] == "failed"
    table = list_guarded_tables()[0]
    where = f' ON "{table}"' if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(f'DROP TRIGGER "{table}_keep_delete"{where}')
    state, text = found(database.check_schema, "guards")
    assert (state, table in text) == ("failed", True)


@pytest.mark.parametrize(("apart", "state"), [(0, "ok"), (-5, "warn"), (7_200, "failed")])
def test_clocks_that_differ(apart: int, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    there = database.read_database_time() + timedelta(seconds=apart)
    assert abs(datetime.now(UTC) + timedelta(seconds=apart) - there) < timedelta(seconds=2)
    monkeypatch.setattr(database, "read_database_time", lambda: there)
    assert found(database.check_clock, "clock")[0] == state


def test_redis_that_is_away_or_forgets(settings: Any, redis_url: str) -> None:
    assert found(scaled_out.check_redis, "redis") == ("ok", "not used ")
    settings.REDIS_URL = redis_url
    assert found(scaled_out.check_redis, "redis")[0] == "ok"
    with connect_redis(redis_url, 2) as server:
        server.config_set("maxmemory", "100mb")
        server.config_set("maxmemory-policy", "allkeys-lru")
        assert found(scaled_out.check_redis, "redis memory")[0] == "warn"
        server.config_set("maxmemory", "0")
        server.config_set("maxmemory-policy", "noeviction")
    settings.REDIS_URL = f"redis://:hunter2@127.0.0.1:{servers.free_port()}/0"
    state, text = found(scaled_out.check_redis, "redis")
    assert (state, "hunter2" in text) == ("failed", False)


def test_processes_that_are_not_there_or_run_other_code(
    settings: Any, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REDIS_URL, settings.AGENTWEB_RUN_TURNS_IN = redis_url, "worker"
    for name in ("workers", "web processes", "beat"):
        assert found(scaled_out.check_processes, name)[0] == "failed"
    given = [heartbeat.Signs("web"), heartbeat.Signs("worker"), heartbeat.Signs("beat")]
    for one in given:
        one.give()
    for name in ("workers", "web processes", "beat", "code"):
        assert found(scaled_out.check_processes, name)[0] == "ok"
    monkeypatch.setattr(scaled_out, "code_version", lambda: "another")
    assert found(scaled_out.check_processes, "code")[0] == "warn"
    monkeypatch.setattr(os, "getpid", lambda: 7)
    given.append(heartbeat.Signs("beat"))
    given[-1].give()
    assert found(scaled_out.check_processes, "beat")[0] == "warn"
    for one in given:
        one.end()
    assert heartbeat.list_signs() == []
    settings.REDIS_URL = f"redis://127.0.0.1:{servers.free_port()}/0"
    assert found(scaled_out.check_processes, "processes")[0] == "failed"


def test_a_sign_is_a_file_too_and_goes_with_its_process(settings: Any, tmp_path: Path) -> None:
    settings.ALIVE_DIR = str(tmp_path)
    signs = heartbeat.Signs("worker", every=0.01)
    signs.begin()
    path = tmp_path / "agentweb-worker.alive"
    while not (path.is_file() and path.read_text()):
        pass
    signs.end()
    assert len(heartbeat.code_version()) == 12


def test_a_sign_that_could_not_be_written_is_given_the_next_time(
    settings: Any, tmp_path: Path
) -> None:
    """A disk that was full for a while must not leave a process that seems dead."""
    folder = tmp_path / "later"
    settings.ALIVE_DIR, settings.REDIS_URL = str(folder), ""
    signs = heartbeat.Signs("worker")
    signs.give()
    folder.mkdir()
    signs.give()
    assert (folder / "agentweb-worker.alive").exists()


def test_a_worker_that_cannot_start_ends_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Celery would go on, with a worker that never looks for what waits."""

    def start() -> None:
        raise OperationalError("the connection is closed")

    monkeypatch.setattr(worker_loop.loop, "start", start)
    started = type("Worker", (), {"pool_cls": "celery.concurrency.thread:TaskPool"})()
    with pytest.raises(SystemExit, match="could not start: the connection is closed"):
        worker_init.send(sender=started)


def test_what_a_start_refuses_is_a_line(settings: Any) -> None:
    assert found(site_settings.check_start, "settings")[0] == "ok"
    settings.ALLOWED_HOSTS = ["*"]
    state, text = found(site_settings.check_start, "settings")
    assert (state, "AGENTWEB_HOSTS" in text) == ("failed", True)


@pytest.mark.parametrize(
    ("hosts", "https", "origins", "name", "state"),
    [(["localhost"], False, [], "address", "ok"), (["localhost"], True, [], "address", "failed"),
     (["chat.example"], False, [], "AGENTWEB_HTTPS", "warn"),
     (["chat.example"], True, [], "AGENTWEB_ORIGINS", "warn"),
     (["chat.example"], True, ["https://chat.example"], "AGENTWEB_ORIGINS", ""),
     (["chat.example"], True, ["https://chat.example"], "AGENTWEB_TRUSTED_PROXIES", "warn"),
     (["chat.example"], True, ["http://chat.example"], "AGENTWEB_ORIGINS", "failed"),
     (["chat.example"], True, ["https://other.example"], "AGENTWEB_ORIGINS", "failed")],
)  # fmt: skip
def test_hosts_origins_and_https_that_do_not_fit(
    hosts: list[str], https: bool, origins: list[str], name: str, state: str, settings: Any
) -> None:
    settings.ALLOWED_HOSTS, settings.HTTPS = hosts, https
    settings.CSRF_TRUSTED_ORIGINS = origins
    assert found(site_settings.check_address, name)[0] == state


def test_debugging_is_warned_of(settings: Any) -> None:
    settings.DEBUG = True
    assert found(site_settings.check_address, "AGENTWEB_DEBUG")[0] == "warn"


@pytest.mark.parametrize(
    ("key", "state"),
    [("", "warn"), ("sk-ant-x", "ok"), ("sk-ant-x\n", "failed"), ("sk ü", "failed")],
)
def test_a_key_of_no_form(key: str, state: str, settings: Any) -> None:
    settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL = key, ""
    found_state, text = found(model.check_key, "ANTHROPIC_API_KEY")
    assert found_state == state
    assert not key or key not in text


def test_a_model_that_is_not_to_be_had(settings: Any) -> None:
    assert found(model.check_catalogue, "prices")[0] == "ok"
    settings.AGENTWEB_MODEL = "claude-nothing"
    assert found(model.check_catalogue, "AGENTWEB_MODEL")[0] == "failed"
    settings.AGENTWEB_SUMMARY_MODEL = "claude-nothing"
    assert found(model.check_catalogue, "AGENTWEB_SUMMARY_MODEL")[0] == "warn"
    ApiModel.objects.create(pk="claude-dear", window=1, max_output=1, is_enabled=True)
    assert "claude-dear" in found(model.check_catalogue, "prices")[1]


def test_online_the_api_says_whether_it_takes_the_key(settings: Any) -> None:
    settings.ANTHROPIC_API_KEY = ""
    assert found(model.check_online, "API")[0] == "warn"
    with emulator.start(pace=0) as running:
        settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL = "sk-ant-x", running.url
        assert found(model.check_online, "API")[0] == "ok"
        settings.AGENTWEB_MODEL = "claude-nothing"
        assert found(model.check_online, "AGENTWEB_MODEL")[0] == "failed"
    settings.ANTHROPIC_BASE_URL = f"http://127.0.0.1:{servers.free_port()}"
    assert found(model.check_online, "API")[0] == "failed"


def test_a_storage_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(stored_data.check_storage, "storage")[0] == "ok"

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stored_data.storages["workspace"], "save", full)
    assert found(stored_data.check_storage, "storage")[0] == "failed"


def test_turns_that_nobody_comes_for() -> None:
    waiting, running = (
        people_and_turns.queued(people_and_turns.person()),
        people_and_turns.started_turn(people_and_turns.person("bob")),
    )
    assert found(stored_data.check_turns, "turns")[0] == "ok"
    Turn.objects.filter(pk=waiting.pk).update(created_at=timezone.now() - timedelta(minutes=10))
    assert found(stored_data.check_turns, "turns")[1].startswith("1 wait")
    late = timezone.now() - timedelta(minutes=10)
    Turn.objects.filter(pk=running.turn_id).update(lease_until=late)
    state, text = found(stored_data.check_turns, "turns")
    assert (state, text.startswith("2 wait")) == ("failed", True)


def test_a_ledger_that_differs() -> None:
    user = people_and_turns.person()
    people_and_turns.limited(user, 50_000_000)
    people_and_turns.opened(people_and_turns.started_turn(user))
    assert found(stored_data.check_ledger, "ledger")[0] == "ok"
    BudgetWindow.objects.update(held=9)
    assert found(stored_data.check_ledger, "ledger")[0] == "failed"


def test_anchors_that_are_off_missing_or_old(settings: Any, tmp_path: Path) -> None:
    path = tmp_path / "anchors.jsonl"
    settings.AGENTWEB_ANCHOR_FILE = "off"
    assert found(stored_data.check_anchors, "anchors")[0] == "warn"
    settings.AGENTWEB_ANCHOR_FILE = str(path)
    assert found(stored_data.check_anchors, "anchors")[0] == "warn"
    path.write_text("{}\n")
    assert found(stored_data.check_anchors, "anchors")[0] == "ok"
    os.utime(path, (0, 0))
    assert found(stored_data.check_anchors, "anchors")[0] == "warn"


def test_settings_of_mail_and_addresses_that_are_not_whole(settings: Any, tmp_path: Path) -> None:
    assert run_check(stored_data.check_mail) == run_check(stored_data.check_private_addresses) == []
    settings.AGENTWEB_MAIL_PROVIDERS = ("one https://x.example/token id hunter2", "two https://x")
    state, text = found(stored_data.check_mail, "AGENTWEB_MAIL_PROVIDERS")
    assert (state, "hunter2" in text) == ("failed", False)
    settings.AGENTWEB_MAIL_CA_FILE = str(tmp_path / "none.pem")
    assert found(stored_data.check_mail, "AGENTWEB_MAIL_CA_FILE")[0] == "failed"
    settings.AGENTWEB_MCP_PRIVATE_HOSTS = ("wiki.lan:443", "wiki.lan")
    assert found(stored_data.check_private_addresses, "AGENTWEB_MCP_PRIVATE_HOSTS")[0] == "failed"
