"""What a conversation keeps of its calls is what their results say, and what differs is mended."""

from __future__ import annotations

from importlib import import_module
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.models import Sum

from conversations.audit.verify import Tally, verify_conversation, verify_everything
from conversations.models import ApiCall, ApiResult, Conversation
from conversations.transcript.meter import read_meter
from conversations.turns import calls
from conversations.turns.forks import fork_conversation
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db


def demand_sums(conversation: Conversation) -> None:
    conversation.refresh_from_db()
    rows = ApiResult.objects.filter(call__conversation=conversation)
    spent = int(rows.aggregate(sum=Sum("cost_micros"))["sum"])
    assert (conversation.ended_calls, conversation.cost_micros) == (rows.count(), spent)
    meter = read_meter(conversation)
    assert (meter.calls, meter.cost_micros) == (rows.count(), spent)
    assert spent > 0


def forget(**sums: int) -> None:
    Conversation.objects.update(**sums or {"ended_calls": 0, "cost_micros": 0})


def test_replies_summaries_failures_and_lost_calls_are_added_up() -> None:
    conversation = stored_turns.played().conversation
    lease = people_and_turns.next_turn(conversation)
    stored_turns.fail(lease, "no")
    stored_turns.summarise(lease)
    sent = people_and_turns.opened(lease)
    conversation.refresh_from_db()
    assert conversation.ended_calls == ApiCall.objects.count() - 1, "one is open"
    calls.lose_call(call=ApiCall.objects.get(pk=sent.call), conversation=conversation)
    demand_sums(conversation)
    assert ApiResult.objects.filter(call__purpose="summary").exists()
    assert list(verify_everything(Tally())) == []


def test_a_fork_has_cost_nothing_yet() -> None:
    place = stored_turns.played()
    copy = fork_conversation(turn=place.turn)
    assert (copy.ended_calls, copy.cost_micros) == (0, 0)
    assert list(verify_everything(Tally())) == []


@pytest.mark.parametrize("name", ["ended_calls", "cost_micros"])
def test_a_sum_that_differs_is_named_and_mended(name: str) -> None:
    conversation = stored_turns.played().conversation
    due, version = getattr(conversation, name), conversation.version
    stored_turns.played("bea")
    Conversation.objects.filter(pk=conversation.pk).update(**{name: due + 7})
    (found,) = verify_conversation(conversation.public_id, Tally())
    assert (found.table, found.id) == ("conversation", str(conversation.pk))
    said = f"its {name} is {due + 7}, not {due}; `manage.py ledger recompute` sets it"
    assert found.what == said
    assert len(list(verify_everything(Tally()))) == 1
    assert "1 sums of chats recomputed" in _recompute()
    demand_sums(conversation)
    assert conversation.version > version, "open pages learn of it"
    assert list(verify_everything(Tally())) == []
    assert "0 sums of chats recomputed" in _recompute()


def _recompute() -> str:
    out = StringIO()
    call_command("ledger", "recompute", "--reason", "a test", stdout=out)
    return out.getvalue()


def test_the_migration_adds_up_what_was_there_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    migration = import_module("conversations.migrations.0076_add_up_calls")
    monkeypatch.setattr(migration, "SOME", 2)
    played = [stored_turns.played(name).conversation for name in ("ada", "bea", "cleo")]
    empty = Conversation.objects.create(owner=played[0].owner, model=stored_turns.MODEL)
    forget()
    # Four in two lots, each: its keys, its transaction, its locks, its sums. Then no more.
    editor = SimpleNamespace(connection=connection)
    with django_assert_num_queries(2 * 5 + 1):
        migration.add_up_calls(apps, editor)
    for conversation in played:
        demand_sums(conversation)
    empty.refresh_from_db()
    assert (empty.ended_calls, empty.cost_micros) == (0, 0)
    assert list(verify_everything(Tally())) == []
