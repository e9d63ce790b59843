"""Allowances: which budgets count for a person, and where each comes from."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.budgets.effective import BudgetStatus, Rule, choose_effective, compute_percent

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def rule(id: int, scope: str = "site", kind: str = "per_member", **fields: Any) -> Rule:
    known = {"unit": "money", "period": "month", "zone": "UTC", "limit": 10} | fields
    return Rule(id, scope, kind, **known)


def ids(*rules: Rule) -> list[int]:
    return [each.id for each in choose_effective(rules)]


def test_every_pool_counts() -> None:
    assert ids(rule(3, kind="pool"), rule(1, "group", "pool"), rule(2, "group", "pool")) == [
        1,
        2,
        3,
    ]


def test_what_is_set_for_the_person_counts_and_not_what_the_groups_or_the_site_give() -> None:
    assert ids(rule(1), rule(2, "group", limit=99), rule(3, "user", limit=1)) == [3]


def test_of_the_groups_the_largest_counts() -> None:
    assert ids(rule(1, limit=500), rule(2, "group", limit=20), rule(3, "group", limit=30)) == [3]
    assert ids(rule(2, "group"), rule(1, "group")) == [1]


def test_the_site_gives_what_nobody_else_does() -> None:
    assert ids(rule(1)) == [1]
    assert ids() == []


def test_units_and_periods_are_apart() -> None:
    rules = rule(1), rule(2, "user", unit="tokens"), rule(3, "user", period="day"), rule(4, "user")
    assert ids(*rules) == [2, 3, 4]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["site", "group", "user"]),
            st.sampled_from(["pool", "per_member"]),
            st.sampled_from(["money", "turns"]),
            st.sampled_from(["day", "month"]),
            st.integers(0, 5),
        )
    )
)
def test_each_unit_and_period_has_one_allowance_and_it_is_the_nearest(rows: Any) -> None:
    number = count(1)
    rules = [
        rule(next(number), scope, kind, unit=unit, period=period, limit=limit)
        for scope, kind, unit, period, limit in rows
    ]
    found = choose_effective(reversed(rules))
    assert found == choose_effective(rules)
    assert {each for each in rules if each.is_pool} == {each for each in found if each.is_pool}
    own = [each for each in found if not each.is_pool]
    keys = {(each.unit, each.period) for each in rules if not each.is_pool}
    assert sorted((each.unit, each.period) for each in own) == sorted(keys)
    for each in own:
        rivals = [
            r for r in rules if not r.is_pool and (r.unit, r.period) == (each.unit, each.period)
        ]
        scopes = [r.scope for r in rivals]
        nearest = next(scope for scope in ("user", "group", "site") if scope in scopes)
        assert each.scope == nearest
        assert each.limit == max(r.limit for r in rivals if r.scope == nearest)


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (rule(1, kind="pool"), "shared by everybody"),
        (rule(1), "the same for everybody"),
        (rule(1, "group", "pool", group="Research"), "shared by group Research"),
        (rule(1, "group", group="Research"), "from group Research"),
        (rule(1, "user"), "set for this person"),
    ],
)
def test_it_says_where_it_comes_from(one: Rule, words: str) -> None:
    assert one.source == words


def test_a_standing_says_what_is_left() -> None:
    standing = BudgetStatus(rule(1), NOW, None, 100, 60, 30)
    assert (standing.left, standing.percent, standing.is_over) == (10, 60, False)
    assert BudgetStatus(rule(1), NOW, None, 100, 100, 30).left == -30
    assert BudgetStatus(rule(1), NOW, None, 100, 100, 0).is_over
    assert (
        compute_percent(0, 0),
        compute_percent(5, 0),
        compute_percent(999, 10),
        compute_percent(1, 3),
    ) == (100, 100, 100, 33)
