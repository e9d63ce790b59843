"""Transactions that the database ended for another one's sake are run again, whole."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from conversations import db
from conversations.db import RETRIES, transact
from conversations.models import McpDecision, McpServer, User
from conversations.toolbox.mcp import servers
from tests.support.people_and_turns import crowd, failures, person

pytestmark = pytest.mark.only_database("postgres", "of deadlocks: SQLite has one writer at a time")


def end_transaction(code: str) -> None:
    """Have the server end the transaction with this error, as it does for a conflict."""
    with connection.cursor() as cursor:
        cursor.execute(f"DO $$ BEGIN RAISE EXCEPTION 'ended' USING ERRCODE = '{code}'; END $$")


@pytest.mark.django_db(transaction=True)
def test_two_that_wait_for_each_other_are_both_done(caplog: Any) -> None:
    keys = [User.objects.create(username=name).pk for name in ("first", "second")]
    both_have_one = threading.Barrier(2)

    def work(at: int) -> int:
        tries = 0

        @transact
        def lock_both() -> None:
            nonlocal tries
            tries += 1
            # Again, it waits for the other at once: which of two is woken first is chance.
            order = (at, 1 - at) if tries == 1 else (1 - at, at)
            for number, key in enumerate(keys[one] for one in order):
                row = User.objects.select_for_update().get(pk=key)
                User.objects.filter(pk=key).update(username=row.username + "+")
                if number == 0 and tries == 1:
                    both_have_one.wait(timeout=60)

        lock_both()
        return tries

    found = crowd(2, work)
    assert failures(found) == []
    assert sorted(found) == [1, 2]
    assert {row.username for row in User.objects.all()} == {"first++", "second++"}
    assert "lock_both is run again: deadlock detected" in caplog.text


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("code", "tries"), [("40P01", 1 + RETRIES), ("40001", 1 + RETRIES),
                                             ("55P03", 1)])  # fmt: skip
def test_what_goes_on_failing_is_raised(code: str, tries: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(db, "PAUSE", 0)
    seen = []

    @transact
    def fail() -> None:
        seen.append(User.objects.create(username="never"))
        end_transaction(code)

    with pytest.raises(OperationalError, match="ended"):
        fail()
    assert len(seen) == tries
    assert not User.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_inside_another_transaction_the_outermost_is_run_again(monkeypatch: Any) -> None:
    monkeypatch.setattr(db, "PAUSE", 0)
    inner_tries, outer_tries = [], []

    @transact
    def inner() -> None:
        inner_tries.append(1)
        if len(inner_tries) == 1:
            end_transaction("40P01")

    @transact
    def outer() -> None:
        outer_tries.append(User.objects.create(username="once"))
        inner()

    outer()
    assert (len(inner_tries), len(outer_tries)) == (2, 2)
    assert User.objects.count() == 1
    inner_tries.clear()
    with pytest.raises(OperationalError), transaction.atomic():
        inner()
    assert len(inner_tries) == 1


@pytest.mark.django_db(transaction=True)
def test_an_error_of_the_work_itself_is_raised_at_once() -> None:
    tries = []

    @transact
    def repeat_a_name() -> None:
        tries.append(1)
        User.objects.create(username="one")
        User.objects.create(username="one")

    with pytest.raises(IntegrityError):
        repeat_a_name()
    assert len(tries) == 1
    assert not User.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_what_fails_after_the_commit_is_not_run_again(monkeypatch: Any) -> None:
    monkeypatch.setattr(db, "PAUSE", 0)

    @transact
    def work() -> None:
        User.objects.create(username="once")
        transaction.on_commit(lambda: end_transaction("40P01"))

    with pytest.raises(OperationalError, match="ended"):
        work()
    assert User.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_new_server_is_saved_though_its_first_transaction_was_ended(monkeypatch: Any) -> None:
    """The save that is taken back leaves the object with a key, as if it were stored."""
    monkeypatch.setattr(db, "PAUSE", 0)
    lock, tries = servers.lock_site_chain, []

    def lock_second_time() -> Any:
        tries.append(1)
        if len(tries) == 1:
            end_transaction("40P01")
        return lock()

    monkeypatch.setattr(servers, "lock_site_chain", lock_second_time)
    server = McpServer(name="demo", transport="http", url="https://mcp.example/mcp")
    servers.save_server(server=server, actor=person("root"), changed=["name", "url"])
    assert len(tries) == 2
    assert McpServer.objects.get().pk == server.pk
    (decision,) = McpDecision.objects.all()
    assert (decision.kind, decision.note) == ("added", "name, url")
