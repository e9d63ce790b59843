"""Drafts of running answers: each exists as long as its call is open."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from conversations.agent.ports import Ending, Finish
from conversations.log.leases import Lease
from conversations.models import Draft
from conversations.turns import drafts, turns
from tests.support import people_and_turns, stored_turns
from tests.support.people_and_turns import USAGE


def create_elsewhere(lease: Lease) -> None:
    """Save the first draft in another connection, as a thread does whose turn was stopped."""
    try:
        drafts.save_draft(lease=lease, text="Here", thinking="")
    finally:
        connection.close()


def wait_for_lock(one: Future[None]) -> None:
    """Wait until another connection waits for a lock of this one, or has done without."""
    deadline = time.monotonic() + 10
    with connection.cursor() as cursor:
        while not one.done():
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[0]:
                return
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.mark.only_database("postgres", "SQLite has one writer at a time")
@pytest.mark.django_db(transaction=True)
def test_a_draft_that_is_saved_while_its_call_is_closed_is_no_second_answer() -> None:
    lease = people_and_turns.started_turn()
    call = people_and_turns.opened(lease).call
    stopped = Ending("stopped", USAGE, "", ('{"type":"text","text":"Here"}',))
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            stored_turns.close(lease, call, stopped)
            late = threads.submit(create_elsewhere, lease)
            wait_for_lock(late)
        late.result()
    turns.finish_turn(lease=lease, finish=Finish("cancelled", "stopped"))
    assert people_and_turns.turn_of(lease).messages.filter(kind="answer").count() == 1
    assert not Draft.objects.exists()
