"""Settlement: what a call used replaces what it held, and what that tells people."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from conversations.agent.ports import Ending
from conversations.agent.usage import Usage, read_usage
from conversations.budgets.bulk_changes import BulkChange, BulkKind, perform_change, plan_change
from conversations.budgets.grants import correct_window, grant_more, set_limit
from conversations.budgets.notices import list_notices
from conversations.budgets.prices import load_price_list
from conversations.budgets.status import list_statuses
from conversations.models import (
    ApiCall,
    ApiResult,
    Budget,
    BudgetWindow,
    Crossing,
    LedgerEntry,
    Turn,
    User,
)
from conversations.turns import takeovers
from conversations.turns.billed_usage import IN_FLIGHT, TOKENS_PER_SECOND, bill_lost_call
from conversations.turns.drafts import save_draft
from tests.support import budget_rows, people_and_turns, stored_turns
from tests.support.budget_rows import PLENTY, clean, group, member, padded, play, worst

pytestmark = pytest.mark.django_db
#: The budget that `people_and_turns.limited` makes.
SLOT: dict[str, Any] = {"kind": "per_member", "unit": "money", "period": "month"}


def test_a_window_tells_each_percent_once() -> None:
    user = people_and_turns.person()
    lease = people_and_turns.started_turn(user)
    cost = play(lease)
    budget = people_and_turns.limited(user, 10 * cost + 10**6, soft_percents="1, 50")
    call = people_and_turns.opened(lease)
    assert list_notices(user.pk) == ()
    stored_turns.close(
        lease, call.call, people_and_turns.complete(usage=Usage(200_000, 1, 0, 0, 0))
    )
    assert list(Crossing.objects.values_list("percent", flat=True)) == [1]
    play(lease)
    assert Crossing.objects.count() == 1
    [notice] = list_notices(user.pk)
    [standing] = list_statuses(user.pk)
    assert (notice.percent, notice.spent, notice.limit) == (1, standing.spent, budget.limit)
    assert (notice.resets_at, notice.is_over) == (standing.ends_at, False)
    Budget.objects.update(limit=standing.spent + 10**6)
    play(lease)
    percents = list(Crossing.objects.order_by("pk").values_list("percent", flat=True))
    assert percents == [1, 50] or standing.spent < 10**6
    Budget.objects.update(limit=1)
    [notice] = list_notices(user.pk)
    assert notice.is_over
    assert people_and_turns.started_turn(user, "Another")
    assert clean()


def test_all_members_are_told_of_their_pool() -> None:
    ada, bea = member("Research"), member("Research", name="bea")
    lease = people_and_turns.started_turn(ada)
    pool = group("Research", worst(lease), kind="pool", soft_percents="1")
    play(lease, people_and_turns.complete(usage=Usage(100, 500, 0, 0, 0)))
    for user in (ada, bea):
        assert [(each.rule.id, each.percent) for each in list_notices(user.pk)] == [(pool.pk, 1)]
    assert list_notices(member(name="eve").pk) == ()


@pytest.mark.parametrize(
    "figures",
    [
        {"input_tokens": -5_000_000, "output_tokens": -1},
        {"input_tokens": 10**30, "output_tokens": 3},
        {"input_tokens": "many", "output_tokens": None},
        {"input_tokens": 1e9, "output_tokens": 1.5e300},
        {"input_tokens": True, "cache_read_input_tokens": -1},
    ],
)
def test_a_bad_figure_never_makes_money_and_is_flagged(figures: dict[str, Any]) -> None:
    user = people_and_turns.person()
    people_and_turns.limited(user, PLENTY)
    lease = people_and_turns.started_turn(user)
    cost = play(lease, people_and_turns.complete(usage=read_usage(figures)))
    row = ApiResult.objects.get()
    window = BudgetWindow.objects.get()
    assert (row.cost_basis, cost > 0) == ("clamped", True)
    assert (window.held, window.spent + window.overrun) == (0, cost)
    assert cost < 10**15
    assert LedgerEntry.objects.filter(amount__lt=0).count() == 0
    assert clean()


def test_a_whole_answer_without_figures_is_not_free() -> None:
    user = people_and_turns.person()
    people_and_turns.limited(user, PLENTY)
    people_and_turns.limited(user, PLENTY, unit="tokens")
    lease = people_and_turns.started_turn(user)
    for usage in (None, Usage(0, 0, 0, 0, 0)):
        ending = Ending(
            "complete", usage, "end_turn", (people_and_turns.ANSWER,), received_tokens=50
        )
        cost = play(lease, ending)
        row = ApiResult.objects.latest("pk")
        asked = row.call.estimated_tokens
        expected = load_price_list(stored_turns.MODEL, timezone.now()).cost(
            Usage(asked, 50, 0, 0, 0)
        )
        assert (cost, row.cost_basis, row.input_tokens) == (expected, "estimated", None)
    assert clean()


def test_an_answer_whose_last_figures_are_missing_is_counted_by_what_came() -> None:
    lease = people_and_turns.started_turn()
    said = Usage(1_000, 1, 0, 0, 0, is_final=False)
    cost = play(
        lease, Ending("complete", said, "end_turn", (people_and_turns.ANSWER,), received_tokens=400)
    )
    row = ApiResult.objects.get()
    assert (row.cost_basis, row.output_tokens) == ("estimated", 400)
    assert cost == play(lease, people_and_turns.complete(usage=Usage(1_000, 400, 0, 0, 0)))


@pytest.mark.parametrize("unit", ["money", "tokens", "turns"])
def test_a_lost_call_is_spent_by_its_estimate_in_every_unit(unit: str) -> None:
    user = people_and_turns.person()
    people_and_turns.limited(user, PLENTY, unit=unit)
    lease = people_and_turns.started_turn(user)
    call = ApiCall.objects.get(pk=people_and_turns.opened(lease).call)
    Turn.objects.update(lease_until=call.sent_at)
    takeovers.take_over_turn(turn_id=lease.turn_id, everything=True)
    window = BudgetWindow.objects.get()
    amounts = {
        "money": worst(lease, IN_FLIGHT), "tokens": padded(lease) + IN_FLIGHT, "turns": 1
    }  # fmt: skip
    assert (window.spent, window.held) == (amounts[unit], 0)
    assert ApiResult.objects.get().cost_micros == amounts["money"]
    assert clean()


def test_a_lost_answer_is_estimated_by_its_draft_and_by_the_time_its_worker_lived() -> None:
    lease = people_and_turns.started_turn()
    call = ApiCall.objects.get(pk=people_and_turns.opened(lease).call)
    later = call.sent_at + timedelta(hours=1)

    def written(seconds: int) -> int:
        Turn.objects.update(lease_until=call.sent_at + timedelta(seconds=seconds))
        return bill_lost_call(ApiCall.objects.get(pk=call.pk), later).output

    assert written(0) == IN_FLIGHT
    assert written(3) == 3 * TOKENS_PER_SECOND + IN_FLIGHT
    save_draft(lease=lease, text="word " * 900, thinking="hm")
    assert 900 < written(0) < 2_000
    assert written(3_000) == call.max_tokens == 2_000


def test_what_is_settled_after_its_window_is_over_is_entered_there() -> None:
    user = people_and_turns.person()
    people_and_turns.limited(user, PLENTY, "day", soft_percents="1")
    lease = people_and_turns.started_turn(user)
    sent = people_and_turns.opened(lease)
    before = BudgetWindow.objects.get().starts_at - timedelta(days=2)
    BudgetWindow.objects.update(starts_at=before, ends_at=before + timedelta(days=1))
    stored_turns.close(
        lease, sent.call, people_and_turns.complete(usage=Usage(900_000, 1_000, 0, 0, 0))
    )
    window = BudgetWindow.objects.get()
    assert window.spent + window.overrun == ApiResult.objects.get().cost_micros
    assert not Crossing.objects.exists()
    assert clean()


def crossed() -> list[tuple[int, int]]:
    return list(Crossing.objects.order_by("pk").values_list("percent", "limit"))


@pytest.mark.parametrize("kind", ["pool", "per_member"])
def test_a_correction_that_uses_a_limit_up_is_told_of(kind: str) -> None:
    user = people_and_turns.person()
    budget = budget_rows.site(10**7, kind=kind)
    play(people_and_turns.started_turn(user))
    window = BudgetWindow.objects.get()
    assert crossed() == []
    correct_window(window_id=window.pk, amount=6 * 10**6, reason="The bill says more.")
    assert crossed() == [(50, 10**7)]
    grant_more(budget=budget, amount=10**7, reason="for the thesis")
    correct_window(window_id=window.pk, amount=12 * 10**6, reason="And more.")
    assert crossed() == [(50, 10**7), (80, 2 * 10**7)]
    correct_window(window_id=window.pk, amount=2 * 10**6, reason="All of it.")
    assert [percent for percent, _ in crossed()] == [50, 80, 95, 100]


def test_a_limit_that_is_lowered_below_what_is_spent_is_told_of() -> None:
    user, other = people_and_turns.person(), people_and_turns.person("bob")
    budget = people_and_turns.limited(user, PLENTY, soft_percents="")
    play(people_and_turns.started_turn(user))
    play(people_and_turns.started_turn(other))
    set_limit(user=user, limit=PLENTY - 1, **SLOT)
    assert crossed() == []
    set_limit(user=user, limit=1, **SLOT)
    assert crossed() == [(100, 1)]
    budget.refresh_from_db()
    budget.note = "short"
    budget.save()
    assert crossed() == [(100, 1)]


def test_a_limit_that_was_set_during_a_call_is_told_of_with_its_end() -> None:
    user = people_and_turns.person()
    budget_rows.site(PLENTY)
    lease = people_and_turns.started_turn(user)
    sent = people_and_turns.opened(lease)
    own = people_and_turns.limited(user, 1)
    assert not Crossing.objects.exists()
    stored_turns.close(lease, sent.call, people_and_turns.complete())
    passed = Crossing.objects.filter(window__budget=own).values_list("percent", flat=True)
    assert sorted(passed) == [50, 80, 95, 100]
    assert clean()


def test_limits_that_are_lowered_together_are_told_of() -> None:
    user, root = people_and_turns.person(), people_and_turns.person("root")
    people_and_turns.limited(user, PLENTY, soft_percents="")
    play(people_and_turns.started_turn(user))
    people = User.objects.filter(pk=user.pk)
    change = BulkChange(BulkKind.LIMIT, 1, None, "the term is over", uuid4())
    digest = plan_change(people, change).digest
    perform_change(people=people, change=change, digest=digest, actor=root)
    assert crossed() == [(100, 1)]


def test_nobody_is_told_of_what_does_not_limit() -> None:
    user = people_and_turns.person()
    site = budget_rows.site(PLENTY)
    play(people_and_turns.started_turn(user))
    people_and_turns.limited(user, PLENTY)
    site.limit = 1
    site.save()
    assert crossed() == []
    Budget.objects.filter(user=user).update(is_active=False)
    User.objects.update(is_exempt=True)
    site.save()
    assert crossed() == []
    User.objects.update(is_exempt=False)
    site.save()
    assert [percent for percent, _ in crossed()] == [50, 80, 95, 100]
