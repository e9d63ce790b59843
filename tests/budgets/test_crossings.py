"""Which changes of allowances and groups are told of: those that are made, and no step of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import transaction
from django.utils import timezone

from conversations.budgets.crossings import recording_afterwards
from conversations.budgets.grants import grant_more
from conversations.budgets.import_budgets import import_budgets
from conversations.budgets.spending import filter_spending, read_spending_row
from conversations.budgets.windows import lock_slots
from conversations.models import Budget, BudgetWindow, Crossing, User
from conversations.models.periods import compute_bounds
from tests.support import people_and_turns
from tests.support.budget_rows import clean, group, member, site

pytestmark = pytest.mark.django_db


def spend(budget: Budget, user: User, spent: int) -> None:
    """Make the present window of a person, or change it, as after calls."""
    starts, ends = compute_bounds(budget.period, budget.time_zone, timezone.now())
    values = {"ends_at": ends, "spent": spent, "limit": budget.limit}
    BudgetWindow.objects.update_or_create(
        budget=budget, user=user, starts_at=starts, defaults=values
    )


def told() -> set[tuple[int, int]]:
    """Return the budgets whose limits are recorded as used up, with the limits."""
    return set(Crossing.objects.filter(percent=100).values_list("window__budget", "limit"))


def change(budget: Budget, **values: Any) -> None:
    for name, value in values.items():
        setattr(budget, name, value)
    budget.save()


def fail_after(budget: Budget, **values: Any) -> None:
    with transaction.atomic(), recording_afterwards():
        change(budget, **values)
        raise ZeroDivisionError


def test_what_applies_between_two_steps_of_a_change_is_nobodys() -> None:
    ada = people_and_turns.person()
    everybody, own = site(50), people_and_turns.limited(ada, 1_000)
    spend(own, ada, 90)
    with recording_afterwards():
        change(own, is_active=False)
        new = people_and_turns.limited(ada, 500)
    assert not Crossing.objects.exists()
    assert not BudgetWindow.objects.filter(budget=everybody).exists()
    with recording_afterwards():
        change(new, is_active=False)
        with recording_afterwards():
            last = people_and_turns.limited(ada, 80)
        assert not Crossing.objects.exists(), "the outer block ends the change"
    assert told() == {(last.pk, 80)}
    change(last, is_active=False)
    assert told() == {(last.pk, 80), (everybody.pk, 50)}


def test_what_fails_is_not_told_of_and_the_next_change_is() -> None:
    ada = people_and_turns.person()
    everybody, own = site(50), people_and_turns.limited(ada, 1_000)
    spend(own, ada, 90)
    with pytest.raises(ZeroDivisionError):
        fail_after(own, is_active=False)
    assert told() == set()
    change(own, note="over")
    assert told() == {(everybody.pk, 50)}


def test_changes_of_one_block_are_of_all_whom_they_concern() -> None:
    ada, bea, cid = (people_and_turns.person(name) for name in ("ada", "bea", "cid"))
    everybody = site(1_000)
    for one in (ada, bea, cid):
        spend(everybody, one, 90)
    with recording_afterwards():
        found = [people_and_turns.limited(one, 80) for one in (ada, bea)]
    assert told() == {(one.pk, 80) for one in found}
    with recording_afterwards():
        change(found[0], limit=70)
        change(everybody, limit=60)
        change(found[1], limit=50)
    assert told() == {(found[0].pk, 80), (found[1].pk, 80), (everybody.pk, 60)}


def test_who_moves_from_one_group_to_another_is_told_of_the_second_alone() -> None:
    ada = member("First")
    everybody, first, second = site(50), group("First", 1_000), group("Second", 500)
    spend(first, ada, 90)
    with recording_afterwards():
        ada.groups.set(Group.objects.filter(name="Second"))
    assert not Crossing.objects.exists()
    assert set(BudgetWindow.objects.values_list("budget", flat=True)) == {first.pk, second.pk}
    ada.groups.clear()
    assert told() == {(everybody.pk, 50)}


def test_who_was_in_a_group_that_is_emptied_is_told_of() -> None:
    ada, everybody, team = member("Team"), site(50), group("Team", 1_000)
    spend(team, ada, 90)
    Group.objects.get(name="Team").user_set.clear()
    assert told() == {(everybody.pk, 50)}


@pytest.mark.parametrize("place", [{"period": "day"}, {"model": "opus"}, {"unit": "tokens"}])
def test_where_an_allowance_was_another_one_is_told_of(place: dict[str, str]) -> None:
    ada, everybody = people_and_turns.person(), site(1_000)
    spend(everybody, ada, 90)
    # Of another calendar, so that it has no window before the next call.
    own = people_and_turns.limited(ada, 500, time_zone="Pacific/Kiritimati")
    change(everybody, limit=50)
    assert not Crossing.objects.exists()
    with recording_afterwards(budgets=[own.pk]):
        change(own, **place)
    assert told() == {(everybody.pk, 50)}


def test_a_file_is_one_change_and_its_preview_tells_of_nothing() -> None:
    ada, boss = people_and_turns.person(), people_and_turns.person("boss")
    everybody = site(1_000_000_000)
    spend(everybody, ada, 90_000_000)
    lines = ["site,,per_member,money,month,50", "user,ada,per_member,money,month,100"]
    text = "\n".join(["scope,subject,kind,unit,period,limit", *lines])
    seen = import_budgets(text=text, actor=boss)
    assert (seen.errors, seen.changes, Crossing.objects.count()) == (0, 2, 0)
    assert BudgetWindow.objects.count() == Budget.objects.count() == 1
    assert import_budgets(text=text, actor=boss, expected=seen.digest).is_kept
    own = Budget.objects.get(user=ada)
    assert set(Crossing.objects.values_list("window__budget", "percent")) == {
        (own.pk, 50), (own.pk, 80),
    }  # fmt: skip


def test_a_day_that_is_over_has_the_limit_of_then_though_no_call_followed() -> None:
    ada, everybody = people_and_turns.person(), site(100, period="day")
    spend(everybody, ada, 20)
    starts, _ = compute_bounds("day", "UTC", timezone.now())
    own = people_and_turns.limited(ada, 10, "day", is_active=False)
    grant_more(budget=own, amount=5, reason="a trial")
    grant_more(budget=own, amount=2, reason="a trial", user=ada)
    grant_more(budget=own, amount=9, reason="a trial", user=people_and_turns.person("bea"))
    change(own, is_active=True)
    change(own, limit=1)
    now = timezone.now() + timedelta(days=1)
    rows = [read_spending_row(row, now) for row in filter_spending(day=starts.date(), now=now)]
    assert [(row.budget, row.spent, row.limit) for row in rows] == [(own, 20, 17)]
    BudgetWindow.objects.filter(budget=everybody).update(spent=0, limit=0)
    assert clean(), "no entry says what its limit was"


def test_a_window_in_which_nothing_is_held_has_the_limit_of_when_it_was_made() -> None:
    ada = people_and_turns.person()
    own = people_and_turns.limited(ada, 10, model="opus")
    grant_more(budget=own, amount=5, reason="a trial")
    # As the reply's after a summary by another model.
    with transaction.atomic():
        lock_slots(ada.pk)
    assert own.windows.get().limit == 15
    assert clean()
