"""The compose file as it is: two web processes, a worker and beat on PostgreSQL and Redis."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from types import SimpleNamespace

import psycopg
import pytest

from agentweb.serving.heartbeat import LASTS
from tests.agentweb.test_serve import Visitor, begin, set_up
from tests.scaled.composing import Composed, until
from tests.support import servers
from tests.web.test_health import stopped

PASSWORD = "0123456789abcdef"


@pytest.fixture(scope="module")
def composed(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Composed]:
    folder = tmp_path_factory.mktemp("composed")
    # Roles are a server's, and another test may have made the same.
    postgres, redis = servers.start_postgres(), servers.start_redis("--requirepass", PASSWORD)
    (folder / "data").mkdir(mode=0o700)
    found = Composed(folder, postgres, redis, PASSWORD)
    found.make_role(servers.make_database(postgres, "composed"))
    yield found
    for process in found.running.values():
        process.kill()
    postgres.discard()
    redis.discard()


def rows(composed: Composed, sql: str) -> list[tuple[object, ...]]:
    url = f"{composed.database.url.rpartition('/')[0]}/composed"
    with psycopg.connect(url) as link:
        return link.execute(sql.encode()).fetchall()


def test_a_worker_refuses_to_begin_before_the_database_is_prepared(composed: Composed) -> None:
    composed.start("worker")
    assert composed.running.pop("worker").wait(timeout=60) == 1
    assert "start `manage.py serve` of this version first" in composed.log("worker").read_text()


def test_it_answers_is_well_and_ends_cleanly(composed: Composed) -> None:
    ports = servers.free_port(), servers.free_port()
    composed.start("emulator", port=composed.emulator)
    for port, twin in zip(ports, ("-1", "-2"), strict=True):
        composed.start("web", port=port, twin=twin)
    for twin in ("-1", "-2"):
        composed.says(f"web{twin}", "agentweb is running at")
    composed.start("worker")
    composed.start("beat")
    composed.says("worker", "agentweb's worker runs up to")
    composed.says("beat", "agentweb's beat is running")

    link = re.findall(r"(http\S+/setup/\S+)", composed.log("web-1").read_text())[0]
    visitor = set_up(SimpleNamespace(port=ports[0], setup_url=link))  # type: ignore[arg-type]
    path = begin(visitor, "Hello there")
    state = "SELECT state, finish_reason FROM conversations_turn"
    until(lambda: rows(composed, state) == [("done", "end_turn")])
    visitor.port = ports[1]
    assert "Hello there" in visitor.ask("GET", path)[2]

    demand_well(composed)
    demand_bounded(composed, visitor, path)
    demand_clean_end(composed)


def demand_well(composed: Composed) -> None:
    """The signs are fresh, the doctor finds all, and the app's role cannot change the record."""
    for name in ("worker", "beat"):
        sign = composed.folder / f"agentweb-{name}.alive"
        assert time.time() - sign.stat().st_mtime < LASTS
    found = composed.manage("doctor", "--json")
    told = {line["name"]: line for line in json.loads(found.stdout)["lines"]}
    for name in ("workers", "web processes", "beat", "guards", "redis", "turns"):
        assert told[name]["state"] == "ok", told[name]
    assert told["web processes"]["text"] == "2 alive"
    assert "database role" not in told
    assert (found.returncode, json.loads(found.stdout)["failed"]) == (0, 0), found.stdout
    where = composed.environment("worker")["DATABASE_URL"]
    with psycopg.connect(where) as link, pytest.raises(psycopg.errors.InsufficientPrivilege):
        link.execute("UPDATE conversations_message SET content = ''")


def demand_bounded(composed: Composed, visitor: Visitor, path: str) -> None:
    """With a database that hangs the process lives, is not ready, and requests end."""
    with stopped(composed.database):
        link = Visitor(visitor.port)
        status, _, words = link.ask("GET", "/healthz/ready")
        assert (status, words) == (503, "The database does not answer.")
        assert link.ask("GET", "/healthz/live")[0] == 200
        visitor.seconds = 60
        status, headers, words = visitor.ask("GET", path)
        assert status == 503
        assert headers["x-request-id"] in words
    until(lambda: link.ask("GET", "/healthz/ready")[0] == 200)
    assert "Hello there" in visitor.ask("GET", path)[2]


def demand_clean_end(composed: Composed) -> None:
    """Each ends when it is told to, its lines are objects, and none names a secret."""
    codes = composed.stop()
    codes.pop("emulator")
    assert set(codes.values()) == {0}, codes
    for name in codes:
        text = composed.log(name).read_text()
        assert "0123456789abcdef0123" not in text
        for line in text.splitlines():
            if line.startswith("{"):
                assert {"time", "level", "logger", "message"} <= set(json.loads(line))
