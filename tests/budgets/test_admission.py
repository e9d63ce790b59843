"""Admission: which budgets a call must fit in, in which units, and what is held and told."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations.agent.ports import Ending, ModelFailed
from conversations.agent.usage import Usage
from conversations.budgets.status import list_statuses
from conversations.log.chain import append_row, lock_site_chain
from conversations.models import ApiCall, Budget, BudgetWindow, Grant, Reservation, TurnCap
from conversations.turns import calls
from tests.support import people_and_turns, stored_turns
from tests.support.budget_rows import (
    PLENTY,
    clean,
    group,
    member,
    padded,
    play,
    refusal,
    site,
    worst,
)

pytestmark = pytest.mark.django_db


def test_a_call_is_held_in_every_pool_and_in_one_allowance_for_each_unit_and_period() -> None:
    user = member("Research", "Sales")
    pools = [site(PLENTY, kind="pool"), group("Research", PLENTY, kind="pool")]
    site(PLENTY)
    group("Sales", PLENTY)
    largest = group("Research", PLENTY + 1)
    group("Strangers", 1, kind="pool")
    own = people_and_turns.limited(user, PLENTY, "day", unit="tokens")
    lease = people_and_turns.started_turn(user)
    sent = people_and_turns.opened(lease)
    held = {row.window.budget: row.amount for row in Reservation.objects.all()}
    tokens = padded(lease) + 2_000
    assert held == dict.fromkeys((*pools, largest), worst(lease)) | {own: tokens}
    assert {row.user for row in BudgetWindow.objects.filter(budget__in=pools)} == {None}
    assert {row.user for row in BudgetWindow.objects.exclude(budget__in=pools)} == {user}
    stored_turns.close(lease, sent.call, people_and_turns.complete())
    assert not BudgetWindow.objects.filter(held__gt=0).exists()
    assert BudgetWindow.objects.get(budget=own).spent == people_and_turns.USAGE.total == 120
    assert clean()


def test_members_share_a_pool_and_not_an_allowance() -> None:
    ada, bea = member("Research"), member("Research", name="bea")
    pool = group("Research", PLENTY, kind="pool")
    each = group("Research", PLENTY)
    costs = [play(people_and_turns.started_turn(user)) for user in (ada, bea)]
    assert BudgetWindow.objects.get(budget=pool).spent == sum(costs)
    spent = dict(BudgetWindow.objects.filter(budget=each).values_list("user", "spent"))
    assert spent == {ada.pk: costs[0], bea.pk: costs[1]}


def test_a_refusal_says_where_the_budget_comes_from() -> None:
    user = member("Research")
    for budget, words in [
        (
            group("Research", 5, period="week"),
            "The weekly budget of <$0.0001 (from group Research)",
        ),
        (site(5, kind="pool"), "The monthly budget of <$0.0001 (shared by everybody)"),
        (
            site(7, unit="tokens", period="hour"),
            "The hourly budget of 7 tokens (the same for every",
        ),
    ]:
        text = refusal(people_and_turns.started_turn(user, f"Hello {budget.pk}"))
        assert text.startswith(words)
        budget.is_active = False
        budget.save()


def test_a_refusal_says_when_in_the_budgets_own_time_zone() -> None:
    user = people_and_turns.person()
    people_and_turns.limited(user, 5, "day", time_zone="Asia/Tokyo")
    [standing] = list_statuses(user.pk)
    assert standing.ends_at is not None
    assert standing.ends_at.astimezone(UTC).hour == 15
    assert "at 00:00 (Asia/Tokyo)." in refusal(people_and_turns.started_turn(user))


def test_a_change_of_the_allowance_in_mid_month_gives_nothing_away() -> None:
    user = member()
    shared = site(PLENTY)
    cost = play(people_and_turns.started_turn(user))
    own = people_and_turns.limited(user, cost + 10)
    assert [one.spent for one in list_statuses(user.pk)] == [cost]
    assert "is spent or held" in refusal(people_and_turns.started_turn(user, "More"))
    Budget.objects.filter(pk=own.pk).update(limit=PLENTY)
    more = play(people_and_turns.started_turn(user, "Even more"))
    own.refresh_from_db()
    Budget.objects.filter(pk=own.pk).update(is_active=False)
    [standing] = list_statuses(user.pk)
    assert (standing.rule.id, standing.spent) == (shared.pk, cost + more)
    assert clean()


def test_tokens_shorten_the_answer_before_they_refuse() -> None:
    user = people_and_turns.person()
    lease = people_and_turns.started_turn(user)
    room = padded(lease) + 1_500
    budget = people_and_turns.limited(user, room, unit="tokens")
    sent = people_and_turns.opened(lease)
    assert ApiCall.objects.get(pk=sent.call).max_tokens == 1_500
    assert sent.is_limited
    assert BudgetWindow.objects.get().held == room
    stored_turns.close(lease, sent.call, people_and_turns.complete(usage=Usage(10, 20, 30, 40, 50)))
    assert BudgetWindow.objects.get().spent == 150
    Budget.objects.filter(pk=budget.pk).update(limit=150 + padded(lease) + 1_023)
    assert "this call may use up to" in refusal(lease)
    assert clean()


def test_a_turn_counts_once_however_many_calls_it_makes() -> None:
    user = people_and_turns.person()
    people_and_turns.limited(user, 2, unit="turns")
    lease = people_and_turns.started_turn(user)
    for _ in range(3):
        play(lease)
    window = BudgetWindow.objects.get()
    assert (window.spent, window.held) == (1, 0)
    play(people_and_turns.started_turn(user, "Another"))
    text = refusal(people_and_turns.started_turn(user, "A third"))
    assert "budget of 2 turns (set for this person) is used up: 2 turns were made" in text
    play(lease)  # what was begun goes on
    assert clean()


def test_a_turn_of_which_nothing_was_paid_is_not_counted() -> None:
    user = people_and_turns.person()
    people_and_turns.limited(user, 1, unit="turns")
    lease = people_and_turns.started_turn(user)
    play(lease, Ending("error", failure=ModelFailed("overloaded", "Busy.")))
    assert BudgetWindow.objects.get().spent == 0
    play(lease)
    assert BudgetWindow.objects.get().spent == 1
    assert clean()


def test_a_turn_that_goes_on_past_midnight_counts_where_it_began() -> None:
    user = people_and_turns.person()
    people_and_turns.limited(user, 5, "day", unit="turns")
    lease = people_and_turns.started_turn(user)
    play(lease)
    window = BudgetWindow.objects.get()
    day = timedelta(days=1)
    BudgetWindow.objects.update(starts_at=window.starts_at - day, ends_at=window.starts_at)
    play(lease)
    spent = BudgetWindow.objects.order_by("starts_at").values_list("spent", flat=True)
    assert list(spent) == [1, 0]


def test_a_grant_adds_to_the_limit_while_it_lasts() -> None:
    ada, bea = people_and_turns.person("ada"), people_and_turns.person("bea")
    budget = site(1)
    now = timezone.now()
    for user, days in ((ada, 1), (bea, -1)):
        grant = Grant(
            budget=budget, user=user, amount=PLENTY, starts_at=now - timedelta(days=2),
            expires_at=now + timedelta(days=days), reason="a trial",
        )  # fmt: skip
        append_row(grant, lock_site_chain())
    play(people_and_turns.started_turn(ada))
    assert [one.limit for one in list_statuses(ada.pk)] == [PLENTY + 1]
    assert "does not allow" in refusal(people_and_turns.started_turn(bea))
    append_row(Grant(budget=budget, amount=PLENTY, reason="for all"), lock_site_chain())
    play(people_and_turns.started_turn(bea, "Now"))
    assert clean()


def test_a_grant_that_ends_touches_no_window_and_refuses_the_next_call() -> None:
    user = people_and_turns.person()
    budget = people_and_turns.limited(user, 1)
    append_row(Grant(budget=budget, amount=PLENTY, reason="a trial"), lock_site_chain())
    lease = people_and_turns.started_turn(user)
    sent = people_and_turns.opened(lease)
    later = timezone.now() + timedelta(days=365)
    assert list_statuses(user.pk, later)[0].limit == PLENTY + 1
    Budget.objects.filter(pk=budget.pk).update(is_active=False)
    own = people_and_turns.limited(user, 2)
    stored_turns.close(lease, sent.call, people_and_turns.complete())
    assert BudgetWindow.objects.filter(budget=budget, spent__gt=2).exists()
    assert "does not allow" in refusal(lease)
    window = BudgetWindow.objects.get(budget=own)
    assert (window.spent, window.held, window.limit) == (0, 0, 2)
    assert clean()


def test_the_database_refuses_a_window_in_which_more_is_spent_and_held_than_allowed() -> None:
    user = people_and_turns.person()
    people_and_turns.limited(user, PLENTY)
    people_and_turns.opened(people_and_turns.started_turn(user))
    window = BudgetWindow.objects.get()
    for change in ({"held": window.limit + 1}, {"spent": window.limit - window.held + 1}):
        with pytest.raises(IntegrityError, match="window_within_limit"), transaction.atomic():
            BudgetWindow.objects.update(**change)


@pytest.mark.parametrize(
    "fields",
    [
        {"scope": "site", "user": True}, {"scope": "group"}, {"scope": "user"},
        {"scope": "user", "user": True, "kind": "pool"}, {"scope": "site", "unit": "miles"},
        {"scope": "site", "period": "year"}, {"scope": "site", "limit": 10**15 + 1},
    ],
)  # fmt: skip
def test_a_budget_has_exactly_the_subject_of_its_scope(fields: dict[str, Any]) -> None:
    if "user" in fields:
        fields = fields | {"user": people_and_turns.person()}
    with pytest.raises(IntegrityError), transaction.atomic():
        Budget.objects.create(**{"limit": 1} | fields)


def test_an_exempt_person_is_neither_held_nor_refused_but_recorded() -> None:
    user = people_and_turns.person(is_exempt=True, is_superuser=False)
    people_and_turns.limited(user, 0)
    site(0, kind="pool")
    assert play(people_and_turns.started_turn(user)) > 0
    assert not BudgetWindow.objects.exists()
    boss = people_and_turns.person("boss", is_superuser=True)
    assert "does not allow" in refusal(people_and_turns.started_turn(boss))


@pytest.fixture
def standing_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no minute end between the making of the windows and what is counted."""
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)


@pytest.mark.usefixtures("standing_clock")
def test_admission_asks_the_same_number_of_times_whatever_budgets_there_are() -> None:
    few, many = member("g0", name="few"), member(*(f"g{at}" for at in range(10)), name="many")
    for at in range(10):
        for kind in ("pool", "per_member"):
            for period in Budget.Period:
                group(f"g{at}", PLENTY, kind=kind, period=period)
        group(f"g{at}", 9, kind="pool", unit="turns")
        TurnCap.objects.create(group=Group.objects.get(name=f"g{at}"), micros=PLENTY)
    counts = []
    for user in (few, many):
        lease = people_and_turns.started_turn(user)
        play(lease)  # makes the windows
        asked = people_and_turns.sending(lease)
        with CaptureQueriesContext(connection) as opening:
            sent = calls.open_call(lease=lease, sending=asked)
        with CaptureQueriesContext(connection) as closing:
            stored_turns.close(lease, sent.call, people_and_turns.complete())
        counts.append((len(opening), len(closing)))
    assert Reservation.objects.filter(call=sent.call).count() == 10 * 7 + 6
    assert counts[0] == counts[1]
    assert counts[0][0] <= 21
    assert counts[0][1] <= 22


@pytest.mark.usefixtures("standing_clock")
def test_budgets_add_five_statements_to_the_opening_of_a_call_however_many_they_are() -> None:
    people = {count: people_and_turns.person(f"ada-{count}") for count in (0, 1, 5)}
    for count, user in people.items():
        for period in list(Budget.Period)[:count]:
            people_and_turns.limited(user, PLENTY, period)
    found = {}
    for count, user in people.items():
        lease = people_and_turns.started_turn(user)
        play(lease)  # makes the windows
        asked = people_and_turns.sending(lease)
        with CaptureQueriesContext(connection) as opening:
            calls.open_call(lease=lease, sending=asked)
        found[count] = len(opening)
    # The lock of the windows, their numbers, the reservations; the entries as links of the chain.
    assert [found[count] - found[0] for count in (1, 5)] == [5, 5]
