"""Budgets: what is spent plus what is held never passes the limit, and the ledger agrees."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Sum
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations.agent.ports import Ending, ModelFailed, Refused
from conversations.agent.usage import Usage, read_factors
from conversations.budgets import holds, reconciliation
from conversations.budgets.grants import correct_call
from conversations.budgets.prices import load_price_list
from conversations.budgets.reconciliation import check_windows
from conversations.budgets.units import CallUse
from conversations.budgets.windows import lock_slots
from conversations.library.conversations import delete_conversation
from conversations.library.erase import erase_due_conversations
from conversations.log.chain import lock_conversation
from conversations.log.leases import Lease
from conversations.models import (
    ApiCall,
    Budget,
    BudgetWindow,
    Conversation,
    LedgerEntry,
    Reservation,
    Turn,
)
from conversations.models.periods import compute_bounds
from conversations.turns import takeovers
from conversations.turns.billed_usage import IN_FLIGHT
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db


def worst(lease: Lease, max_tokens: int = 2_000) -> int:
    """Give what a call of this turn may cost at most."""
    tokens = people_and_turns.sending(lease).estimated_tokens * 125 // 100
    return load_price_list(stored_turns.MODEL, timezone.now()).worst(tokens, max_tokens)


def funded(micros: int, *periods: str) -> Lease:
    user = people_and_turns.person()
    for period in periods or ("month",):
        people_and_turns.limited(user, micros, period)
    return people_and_turns.started_turn(user)


def totals() -> tuple[int, int, int]:
    window = BudgetWindow.objects.get()
    return window.spent, window.held, window.overrun


def cost(row: int) -> int:
    return ApiCall.objects.get(pk=row).result.cost_micros


def test_without_a_budget_nothing_is_held_and_nothing_refused() -> None:
    lease = people_and_turns.started_turn()
    stored_turns.close(lease, people_and_turns.opened(lease).call, people_and_turns.complete())
    assert not BudgetWindow.objects.exists()
    assert not LedgerEntry.objects.exists()


def test_a_call_holds_its_worst_case_until_it_is_settled() -> None:
    lease = funded(50_000_000)
    sent = people_and_turns.opened(lease)
    assert totals() == (0, worst(lease), 0)
    stored_turns.close(lease, sent.call, people_and_turns.complete())
    assert totals() == (cost(sent.call), 0, 0)
    assert 0 < cost(sent.call) < worst(lease)


def test_a_call_of_a_workspace_that_keeps_it_in_one_country_stays_within_its_hold() -> None:
    lease = funded(50_000_000)
    sent = people_and_turns.opened(lease)
    held, written = worst(lease), people_and_turns.sending(lease).estimated_tokens * 125 // 100
    usage = Usage(0, 2_000, 0, written, 0, factors=read_factors({"inference_geo": "us"}))
    stored_turns.close(lease, sent.call, people_and_turns.complete(usage=usage))
    assert totals() == (held, 0, 0)


def test_a_call_that_failed_before_it_started_is_released() -> None:
    lease = funded(50_000_000)
    sent = people_and_turns.opened(lease)
    stored_turns.close(
        lease, sent.call, Ending("error", failure=ModelFailed("unreachable", "Down"))
    )
    assert totals() == (0, 0, 0)
    kinds = LedgerEntry.objects.order_by("pk").values_list("kind", "amount")
    assert list(kinds) == [("reserve", worst(lease)), ("release", 0)]


def test_settling_twice_changes_nothing() -> None:
    lease = funded(50_000_000)
    sent = people_and_turns.opened(lease)
    stored_turns.close(lease, sent.call, people_and_turns.complete())
    before = people_and_turns.everything()
    call = ApiCall.objects.get(pk=sent.call)
    row = lock_conversation(lease.conversation_id)
    holds.settle_holds(call=call, used=CallUse(7_777, Usage(7, 0, 0, 0, 0)), conversation=row)
    holds.settle_holds(call=call, used=None, conversation=row)
    assert people_and_turns.everything() == before


def test_what_costs_more_than_was_held_is_kept_apart_and_counts() -> None:
    lease = funded(50_000_000)
    sent = people_and_turns.opened(lease)
    held = worst(lease)
    stored_turns.close(
        lease, sent.call, people_and_turns.complete(usage=Usage(9_000_000, 20, 0, 0, 0))
    )
    assert totals() == (held, 0, cost(sent.call) - held)
    assert sum(totals()) == cost(sent.call)
    assert list(check_windows()) == []
    Budget.objects.update(limit=held + 10_000)
    with pytest.raises(Refused):
        people_and_turns.opened(lease)


def test_a_correction_gives_back_what_was_used_beyond_the_hold_first() -> None:
    lease = funded(50_000_000)
    sent = people_and_turns.opened(lease)
    held = worst(lease)
    stored_turns.close(
        lease, sent.call, people_and_turns.complete(usage=Usage(9_000_000, 20, 0, 0, 0))
    )
    over = cost(sent.call) - held
    (entry,) = correct_call(call_id=sent.call, amount=-over - 7, reason="The bill says less.")
    assert (entry.amount, entry.overrun) == (-over - 7, -over)
    assert totals() == (held - 7, 0, 0)
    # What is used beyond a hold later is not given back by it.
    more = people_and_turns.opened(lease)
    stored_turns.close(
        lease, more.call, people_and_turns.complete(usage=Usage(9_000_000, 20, 0, 0, 0))
    )
    assert totals()[2] > 0
    assert list(check_windows()) == []
    Turn.objects.update(state="done")
    delete_conversation(conversation=Conversation.objects.get(pk=lease.conversation_id))
    assert erase_due_conversations(now=timezone.now() + timedelta(days=365)) == 1
    assert list(check_windows()) == []


def test_a_window_that_is_not_of_its_budget_is_named() -> None:
    lease = funded(50_000_000)
    Budget.objects.create(scope="site", unit="tokens", limit=10**9)
    people_and_turns.opened(lease)
    other = people_and_turns.person("bea")
    second = timedelta(seconds=1)
    windows = list(BudgetWindow.objects.all())
    assert len(windows) == 2
    for window in windows:
        changes = (
            {"limit": window.limit + 1}, {"starts_at": window.starts_at + second},
            {"ends_at": window.starts_at + second}, {"user": other}, {"user": None},
        )  # fmt: skip
        for change in changes:
            with transaction.atomic():
                BudgetWindow.objects.filter(pk=window.pk).update(**change)
                found = [(one.table, one.id) for one in check_windows()]
                assert found == [("budgetwindow", str(window.pk))], change
                transaction.set_rollback(True)


def test_many_windows_are_checked_with_the_queries_of_one_and_an_unreadable_one_is_named() -> None:
    counts = []
    for name in ("ada", "bea"):
        user = people_and_turns.person(name)
        for period in ("day", "month"):
            people_and_turns.limited(user, 50_000_000, period)
        people_and_turns.opened(people_and_turns.started_turn(user))
        with CaptureQueriesContext(connection) as queries:
            assert list(check_windows()) == []
        counts.append(len(queries))
    assert counts[0] == counts[1]
    strange = BudgetWindow.objects.order_by("pk")[2]
    Budget.objects.filter(pk=strange.budget_id).update(time_zone="Nowhere/At all")
    BudgetWindow.objects.filter(user__username="ada").update(spent=7)
    *differing, unreadable = sorted(check_windows(), key=lambda one: int(one.id))
    assert [one.what for one in differing] == ["spent is 7, not 0"] * 2
    assert (unreadable.id, unreadable.what[:14]) == (str(strange.pk), "cannot be read")


def test_of_the_rows_of_one_window_some_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciliation, "MOST", 1)
    lease = funded(50_000_000)
    for _ in range(2):
        stored_turns.close(lease, people_and_turns.opened(lease).call, people_and_turns.complete())
    Reservation.objects.update(amount=1)
    assert [one.table for one in check_windows()].count("reservation") == 1
    Reservation.objects.all().delete()
    assert [one.table for one in check_windows()].count("ledgerentry") == 1


def test_the_answer_is_shortened_before_a_call_is_refused() -> None:
    lease = funded(1)
    Budget.objects.update(limit=worst(lease, 1_500))
    shortened = ApiCall.objects.get(pk=people_and_turns.opened(lease).call)
    assert 1_024 <= shortened.max_tokens <= 1_500
    assert worst(lease, shortened.max_tokens + 2) > Budget.objects.get().limit
    spent, held, _ = totals()
    assert spent + held <= Budget.objects.get().limit


def test_the_tightest_budget_shortens_the_answer() -> None:
    lease = funded(50_000_000, "day", "month", "lifetime")
    Budget.objects.filter(period="month").update(limit=worst(lease, 1_500))
    shortened = ApiCall.objects.get(pk=people_and_turns.opened(lease).call)
    assert 1_024 <= shortened.max_tokens <= 1_500


def test_a_call_is_refused_when_not_even_a_short_answer_can_be_paid() -> None:
    lease = funded(1)
    Budget.objects.update(limit=worst(lease, 1_024) - 1)
    before = people_and_turns.everything()
    with pytest.raises(Refused):
        people_and_turns.opened(lease)
    assert people_and_turns.everything() == before
    Budget.objects.update(limit=worst(lease, 1_024))
    assert ApiCall.objects.get(pk=people_and_turns.opened(lease).call).max_tokens == 1_024


@pytest.mark.parametrize(
    ("period", "said"),
    [("day", "The daily budget"), ("month", "The monthly budget"), ("lifetime", "The lifetime")],
)
def test_a_refusal_says_which_budget_used_of_what_and_until_when(period: str, said: str) -> None:
    lease = funded(10_000, period)
    with pytest.raises(Refused) as refused:
        people_and_turns.opened(lease)
    text = refused.value.text
    assert refused.value.code == "budget"
    assert text.startswith(said)
    assert "of $0.010 (set for this person) does not allow another call" in text
    assert "$0.00 is spent or held" in text
    assert ("It starts anew on" in text) == (period != "lifetime")
    _, ends = compute_bounds(period, "UTC", timezone.now())
    assert ends is None or f"{ends.day} {ends:%B %Y} at 00:00 (UTC)" in text


def test_every_budget_of_a_user_must_allow_a_call() -> None:
    lease = funded(50_000_000, "day", "month", "lifetime")
    Budget.objects.filter(period="lifetime").update(limit=10_000)
    with pytest.raises(Refused, match="lifetime"):
        people_and_turns.opened(lease)
    assert not BudgetWindow.objects.filter(held__gt=0).exists()
    Budget.objects.filter(period="lifetime").update(is_active=False)
    people_and_turns.opened(lease)
    assert BudgetWindow.objects.filter(held=worst(lease)).count() == 2


def test_a_budget_that_is_lowered_in_mid_turn_stops_before_the_next_call() -> None:
    lease = funded(50_000_000)
    sent = people_and_turns.opened(lease)
    Budget.objects.update(limit=0)
    stored_turns.close(lease, sent.call, people_and_turns.complete())  # what was admitted completes
    with pytest.raises(Refused):
        people_and_turns.opened(lease)
    assert totals()[0] == cost(sent.call)


def test_a_budget_given_in_mid_turn_is_not_asked_for_the_call_on_its_way() -> None:
    lease = people_and_turns.started_turn()
    sent = people_and_turns.opened(lease)
    people_and_turns.limited(people_and_turns.turn_of(lease).conversation.owner, 50_000_000)
    stored_turns.close(lease, sent.call, people_and_turns.complete())
    assert not BudgetWindow.objects.exists()


def test_a_lost_call_costs_its_input_and_what_it_may_have_written() -> None:
    lease = funded(50_000_000)
    call = ApiCall.objects.get(pk=people_and_turns.opened(lease).call)
    Turn.objects.update(lease_until=call.sent_at)
    takeovers.take_over_turn(turn_id=lease.turn_id, everything=True)
    assert totals() == (worst(lease, IN_FLIGHT), 0, 0)
    assert list(check_windows()) == []


def test_a_window_is_made_on_first_use_and_found_again() -> None:
    lease = funded(50_000_000, "day", "month")
    assert not BudgetWindow.objects.exists()
    for _ in range(3):
        stored_turns.close(lease, people_and_turns.opened(lease).call, people_and_turns.complete())
    assert BudgetWindow.objects.count() == 2


def test_the_windows_of_the_past_are_neither_locked_nor_counted() -> None:
    lease = funded(50_000_000, "day")
    start, _ = compute_bounds("day", "UTC", timezone.now())
    old = BudgetWindow.objects.create(
        budget=Budget.objects.get(), user_id=lease.user_id, starts_at=start - timedelta(days=1),
        ends_at=start, limit=50_000_000, spent=50_000_000,
    )  # fmt: skip
    (present,) = lock_slots(lease.user_id)
    assert present.window.pk != old.pk
    people_and_turns.opened(lease)


def storm(lease_of: Callable[[int], Lease], size: int, rounds: int) -> None:
    """Open and close calls from many threads; some cost more than held, some are closed twice."""

    def play(at: int) -> None:
        chance = random.Random(at)
        lease = lease_of(at)
        for _ in range(rounds):
            try:
                sent = people_and_turns.opened(lease)
            except Refused:
                continue
            window = BudgetWindow.objects.select_related("budget").get()
            assert window.spent + window.held <= window.budget.limit
            if chance.random() < 0.1:
                ending = Ending("error", failure=ModelFailed("cut", "cut"))
            else:
                ending = people_and_turns.complete(
                    usage=Usage(200, chance.randrange(3_000), 0, 0, 0)
                )
            stored_turns.close(lease, sent.call, ending)
            if chance.random() < 0.3:
                settle(sent.call)

    assert people_and_turns.failures(people_and_turns.crowd(size, play)) == []


@pytest.mark.django_db(transaction=True)
def test_many_threads_never_pass_the_limit(settings: Any) -> None:
    settings.AGENTWEB_MAX_LIVE_TURNS = 100
    user = people_and_turns.person()
    leases = [people_and_turns.started_turn(user) for _ in range(15)]  # the pool has 16 connections
    limit = 4 * worst(leases[0])
    people_and_turns.limited(user, limit)
    storm(lambda at: leases[at], 15, 6)
    spent, held, overrun = totals()
    assert 0 < spent <= limit
    assert held == 0
    assert not Reservation.objects.filter(is_open=True).exists()
    settled = LedgerEntry.objects.filter(kind__in=("settle", "release"))
    assert settled.aggregate(sum=Sum("amount"))["sum"] == spent + overrun
    reserved = LedgerEntry.objects.filter(kind="reserve").count()
    assert reserved == settled.count() == ApiCall.objects.count()
    assert list(check_windows()) == []


def settle(call: int) -> None:
    with transaction.atomic():
        row = ApiCall.objects.get(pk=call)
        used = CallUse(1_000, Usage(7, 0, 0, 0, 0))
        holds.settle_holds(call=row, used=used, conversation=lock_conversation(row.conversation_id))


@pytest.mark.django_db(transaction=True)
def test_parallel_settlements_of_one_call_count_once() -> None:
    lease = funded(50_000_000)
    sent = people_and_turns.opened(lease)
    assert people_and_turns.failures(people_and_turns.crowd(10, lambda _: settle(sent.call))) == []
    assert totals() == (1_000, 0, 0)
    assert LedgerEntry.objects.filter(kind="settle").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_first_use_by_many_threads_makes_one_window_each() -> None:
    lease = funded(50_000_000, "day", "month", "lifetime")

    def open_them(_: int) -> int:
        with transaction.atomic():
            return len(lock_slots(lease.user_id))

    assert people_and_turns.crowd(16, open_them) == [3] * 16
    assert BudgetWindow.objects.count() == 3
