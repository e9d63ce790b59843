"""Writers of one process wait in a queue for SQLite's one lock, and none polls for it."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, transaction

from conversations.models import User
from tests.support.people_and_turns import crowd, failures, person

pytestmark = [
    pytest.mark.only_database("sqlite", "of SQLite's one writer"),
    pytest.mark.django_db(transaction=True),
]


@pytest.mark.parametrize("is_many", [False, True])
def test_a_statement_that_writes_by_itself_waits_for_its_turn(is_many: bool) -> None:
    key = person().pk
    writes, waits = threading.Event(), threading.Event()

    def work(at: int) -> None:
        if at == 0:
            with transaction.atomic():
                User.objects.filter(pk=key).update(first_name="first")
                writes.set()
                assert waits.wait(60)
                # Long enough for the other one to be refused.
                threading.Event().wait(0.3)
            return
        with connection.cursor() as cursor:
            # Whoever meets the lock of another writer fails at once.
            cursor.execute("PRAGMA busy_timeout = 0")
            assert writes.wait(60)
            waits.set()
            update = f"UPDATE {User._meta.db_table} SET last_name = %s WHERE id = %s"
            if is_many:
                cursor.executemany(update, [("second", key)])
            else:
                cursor.execute(update, ["second", key])

    assert failures(crowd(2, work)) == []
    found = User.objects.get(pk=key)
    assert (found.first_name, found.last_name) == ("first", "second")


def test_a_statement_that_fails_leaves_the_queue() -> None:
    with connection.cursor() as cursor:
        for statement in ("INSERT INTO nowhere VALUES (1)", "UPDATE nowhere SET x = 1"):
            with pytest.raises(Exception, match="nowhere"):
                cursor.execute(statement)
    assert failures(crowd(2, lambda at: person(f"p{at}"))) == []
