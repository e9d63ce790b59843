"""Closed days: added up once, equal to their rows, and added up again after an erasure."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from conversations.audit import closed_day_checks
from conversations.audit.closed_day_checks import check_closed_days
from conversations.budgets.usage import closed_days
from conversations.budgets.usage.closed_days import Sums, close_days, read_closed_days
from conversations.budgets.usage.days import Span
from conversations.budgets.usage.shares import WAYS, split_money, sum_by_group
from conversations.budgets.usage.site import Site, sum_site
from conversations.library.conversations import delete_conversation
from conversations.library.erase import erase_due_conversations
from conversations.models import ClosedDay, PersonDay, Turn
from conversations.reductions.conversation_settings import change_model
from conversations.transfer.importing import import_recording
from conversations.transfer.recordings import read_record
from conversations.turns import turns
from conversations.turns.forks import fork_conversation
from tests.support.stored_turns import MODEL, Played, played

pytestmark = pytest.mark.django_db
LATER = timedelta(days=3)


@pytest.fixture
def span() -> Span:
    today = datetime.now(UTC).date()
    return Span(today - timedelta(6), today)


def close() -> int:
    """Close the days up to today, as a sweep does it in three days."""
    return close_days(timezone.now() + LATER)


def read(span: Span) -> tuple[Site, object]:
    found = sum_site(span)
    costs = {way: sorted(split_money(found, way)) for way in WAYS}
    return replace(found, rest=span), (costs, sum_by_group(found.users))


def erase(place: Played) -> None:
    place.conversation.refresh_from_db()
    delete_conversation(conversation=place.conversation)
    assert erase_due_conversations(now=timezone.now() + timedelta(40)) == 1


def test_a_page_of_closed_days_is_that_of_their_rows(span: Span) -> None:
    for name in ("ada", "bea", "ada"):
        played(name)
    before = read(span)
    assert close() == 1
    assert read(span) == before
    assert sum_site(span).rest.first > span.last
    assert PersonDay.objects.count() == 2
    assert close() == 0
    assert [*check_closed_days()] == []


def test_from_the_first_day_that_is_not_closed_on_calls_are_read(span: Span) -> None:
    played("ada")
    close()
    sums, rest = read_closed_days(Span(span.last, span.last))
    assert sum(group.figures.calls for group in sums.groups) == 3
    assert rest.first == span.last + timedelta(1)
    # The day before has rows that are not closed, so what comes after them is read, too.
    Turn.objects.update(created_at=timezone.now() - timedelta(1))
    assert read_closed_days(span) == (Sums(), span)


def test_what_is_erased_is_added_up_again(span: Span) -> None:
    place = played("ada")
    played("bea")
    close()
    erase(place)
    assert not ClosedDay.objects.get().is_current
    marked = read(span)
    assert {one.name for one in marked[0].users} == {"ada", "bea"}
    assert close() == 1
    assert read(span) == marked
    assert PersonDay.objects.count() == 1
    assert [*check_closed_days()] == []


def test_a_fork_counts_on_the_days_of_what_it_copies(span: Span) -> None:
    place = played("ada")
    Turn.objects.update(created_at=timezone.now() - timedelta(5))
    assert close_days() > 0
    copy = fork_conversation(turn=place.turn)
    assert sum(count for _day, _state, count in sum_site(span).turns) == 2
    assert [*check_closed_days()] == []
    assert close_days() == 1
    erase(replace(place, conversation=copy))
    assert [*check_closed_days()] == []
    assert close_days() == 1
    assert sum(count for _day, _state, count in sum_site(span).turns) == 1


def test_what_no_call_answered_counts_for_the_model_of_its_chat() -> None:
    place = played("ada")
    copy = fork_conversation(turn=place.turn)
    assert close() == 1
    for row, days in ((place.conversation, 0), (copy, 1)):
        change_model(conversation_id=row.pk, model="claude-opus-5")
        assert [*check_closed_days()] == []
        assert close() == days
    assert [model for model, *_ in ClosedDay.objects.get().sums["changes"]] == sorted(
        ["claude-opus-5", MODEL]
    )


def test_an_import_with_dates_of_its_own_is_erased_from_the_day_of_the_import() -> None:
    place = played("ada")
    raw = """{"id": "old", "created_at": "2020-01-01T00:00:00Z",
              "messages": [{"role": "user", "content": "Hi"}]}"""
    row = import_recording(user=place.user, recording=read_record(raw.encode()), model=MODEL)
    assert row.created_at.year == 2020
    assert close() == 1
    erase(replace(place, conversation=row))
    assert [*check_closed_days()] == []
    assert close() == 1
    assert ClosedDay.objects.get().sums["turns"] == [["done", 1]]


@pytest.mark.parametrize("module", [closed_days, closed_day_checks])
def test_what_comes_while_a_day_is_added_up_is_in_no_sums(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = played("ada")
    closed = close() if module is closed_day_checks else 0
    add_up = closed_days.add_up_day

    def fork_meanwhile(day: Any) -> Any:
        monkeypatch.setattr(module, "add_up_day", add_up)
        found = add_up(day) if module is closed_days else None
        fork_conversation(turn=place.turn)
        return found or add_up(day)

    monkeypatch.setattr(module, "add_up_day", fork_meanwhile)
    assert closed == 1 or close() == 1
    assert [*check_closed_days()] == []
    assert not ClosedDay.objects.get().is_current
    assert close() == 1
    assert ClosedDay.objects.get().sums["turns"] == [["done", 2]]
    assert [*check_closed_days()] == []


def test_a_day_with_a_live_turn_is_not_closed() -> None:
    place = played("ada")
    turn = turns.start_conversation(
        owner_id=place.user.pk, model=MODEL, text="And more", client_id=place.turn.public_id
    )
    assert close() == 0
    type(turn).objects.filter(pk=turn.pk).update(state="cancelled")
    assert close() == 1


def test_today_and_yesterday_are_not_closed() -> None:
    played("ada")
    assert close_days() == close_days(timezone.now() + timedelta(1)) == 0


@pytest.mark.parametrize("table", ["days", "people", "more people"])
def test_verify_names_a_day_that_is_not_its_rows(table: str) -> None:
    place = played("ada")
    close()
    match table:
        case "days":
            ClosedDay.objects.update(sums={**ClosedDay.objects.get().sums, "flagged": 7})
        case "people":
            PersonDay.objects.update(micros=1)
        case _:
            other = PersonDay.objects.get()
            other.pk, other.owner = None, type(place.user).objects.create(username="eve")
            other.save()
    [problem] = check_closed_days()
    assert problem.table == "closedday"
    assert str(ClosedDay.objects.get().day) in problem.what


def test_the_order_in_which_a_database_sorts_names_is_no_difference() -> None:
    played("ada")
    close()
    closed = ClosedDay.objects.get()
    assert len(closed.sums["steps"]) > 1
    closed.sums |= {name: closed.sums[name][::-1] for name in ("groups", "steps", "turns")}
    closed.save()
    assert [*check_closed_days()] == []
