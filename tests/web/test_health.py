"""Health: liveness does not depend on the database; readiness answers in time, with a reason."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import NotSupportedError, OperationalError
from django.db.utils import ConnectionHandler
from django.test import Client

from agentweb import env, postgres_timeouts
from conversations.web import health
from tests.support import servers

pytestmark = pytest.mark.django_db


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_look", health._HealthCheck())


def test_a_site_that_is_well_says_ok() -> None:
    answer = Client().get("/healthz/ready")
    assert (answer.status_code, answer.content) == (200, b"ok")
    assert Client().get("/healthz/live").content == b"ok"
    assert Client().post("/healthz/live").status_code == 405


@pytest.mark.usefixtures("look")
def test_without_a_database_it_is_not_ready_and_names_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def down() -> tuple[str, ...]:
        raise OperationalError("could not connect to host 10.0.0.1 as hunter2")

    monkeypatch.setattr(health, "list_problems", down)
    answer = Client().get("/healthz/ready")
    assert (answer.status_code, answer.content) == (503, health.NO_ANSWER.encode())
    assert Client().get("/healthz/live").status_code == 200


@pytest.mark.usefixtures("look")
def test_a_database_that_hangs_holds_one_thread_however_many_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers, began = threading.Event(), []

    def hang() -> tuple[str, ...]:
        began.append(threading.current_thread())
        answers.wait(120)
        return ()

    monkeypatch.setattr(health, "list_problems", hang)
    monkeypatch.setattr(health, "LOOK_SECONDS", 0.05)
    assert [Client().get("/healthz/ready").status_code for _ in range(5)] == [503] * 5
    assert len(began) == 1
    answers.set()
    monkeypatch.setattr(health, "LOOK_SECONDS", 60)
    assert Client().get("/healthz/ready").status_code == 200


@pytest.mark.usefixtures("look")
def test_without_redis_it_is_ready_and_says_so(settings: Any) -> None:
    settings.REDIS_URL = f"redis://:hunter2@127.0.0.1:{servers.free_port()}/0"
    answer = Client().get("/healthz/ready")
    assert (answer.status_code, answer.content) == (200, f"ok\n{health.NO_REDIS}".encode())


@pytest.mark.usefixtures("look")
def test_with_redis_it_is_ready(settings: Any, redis_url: str) -> None:
    settings.REDIS_URL = redis_url
    assert Client().get("/healthz/ready").content == b"ok"


@pytest.mark.parametrize("path", ["/healthz/live", "/healthz/ready"])
def test_a_probe_is_not_sent_on_to_https(path: str, settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = True
    assert Client().get(path).status_code == 200
    assert Client().get("/").status_code == 301


@pytest.mark.parametrize("path", ["/healthz/live", "/healthz/ready"])
def test_a_load_balancer_asks_a_process_by_whatever_address(path: str) -> None:
    header = {"host": "10.42.0.7:8000"}
    assert Client().get(path, headers=header).status_code == 200
    assert Client().get("/", headers=header).status_code == 400


@contextmanager
def stopped(server: servers.Server) -> Iterator[None]:
    """Pause every process of the server, as if it hung: the kernel still accepts connections."""
    assert server.process is not None
    pids = [server.process.pid]
    try:
        send(signal.SIGSTOP, pids)
        # The first makes no more of them now.
        pids += children(pids[0])
        send(signal.SIGSTOP, pids)
        yield
    finally:
        send(signal.SIGCONT, pids)


def send(number: signal.Signals, pids: list[int]) -> None:
    for pid in pids:
        # A process whose connection is gone ends while the others continue.
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(one) for one in found]


def test_a_statement_ends_although_the_server_hangs(
    postgres: servers.Server, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres_timeouts.Connection.connect(postgres_url, autocommit=True) as link:
        assert link.execute("SELECT 1").fetchone() == (1,)
        monkeypatch.setattr(postgres_timeouts.Connection, "patience", 0.3)
        with stopped(postgres), pytest.raises(psycopg.OperationalError, match="did not answer"):
            link.execute("SELECT 1")
        assert link.closed
    monkeypatch.undo()
    with postgres_timeouts.Connection.connect(postgres_url, autocommit=True) as link:
        monkeypatch.setattr(postgres_timeouts.Connection, "patience", 0.3)
        link.patience = None
        assert link.execute("SELECT pg_sleep(0.4)").fetchone() is not None


def test_the_server_is_told_the_limits(postgres_url: str) -> None:
    with postgres_timeouts.Connection.connect(
        postgres_url, **postgres_timeouts.make_options()
    ) as link:
        for name, seconds in (("statement_timeout", 10), ("lock_timeout", 5)):
            assert link.execute(f"SHOW {name}").fetchone() == (f"{seconds}s",)
    assert postgres_timeouts.Connection.patience is not None
    assert postgres_timeouts.Connection.patience > postgres_timeouts.STATEMENT_SECONDS


def test_what_is_repeated_is_prepared_until_its_columns_change(postgres_url: str) -> None:
    one = env.database(postgres_url, pool=1)
    # Pools are kept by alias, and "default" is the run's.
    connection = ConnectionHandler({"default": one, "elsewhere": one})["elsewhere"]

    def execute(statement: str, *values: object) -> list[Any]:
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    asked = "SELECT number FROM kept WHERE number >= %s"
    execute("CREATE TABLE kept (number integer)")
    execute("INSERT INTO kept VALUES (7)")
    for number in range(5):
        assert execute(asked, number) == [(7,)]
    prepared = execute("SELECT statement FROM pg_prepared_statements")
    assert ("SELECT number FROM kept WHERE number >= $1",) in prepared
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("ALTER TABLE kept ALTER COLUMN number TYPE bigint")
    with pytest.raises(NotSupportedError, match="must not change result type"):
        execute(asked, 7)
    connection.close_if_unusable_or_obsolete()
    assert execute(asked, 7) == [(7,)]
    connection.close()
    connection.close_pool()


def test_a_pool_that_is_used_up_refuses_in_time(postgres_url: str) -> None:
    from psycopg_pool import ConnectionPool, PoolTimeout, TooManyRequests

    limits = postgres_timeouts.make_pool(1) | {"max_waiting": 1}
    with ConnectionPool(postgres_url, **limits) as pool:
        pool.wait(60)
        with pool.connection():
            waiting = threading.Thread(target=lambda: pool.putconn(pool.getconn(timeout=60)))
            waiting.start()
            while not pool.get_stats().get("requests_waiting"):
                time.sleep(0.01)
            with pytest.raises(TooManyRequests):
                pool.getconn()
        waiting.join()
        with pool.connection(), pytest.raises(PoolTimeout):
            pool.getconn(timeout=0.2)
