"""Limits on a conversation's policy: refused when it is changed, applied to older changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.context.policy.allowed import Allowed, clamp_policy, demand_allowed, read_allowed
from conversations.context.policy.policy import BOUNDS, PRESETS, Policy, PolicyError, build_policy

OWN = PRESETS["classic"]
BUDGET = "input_token_budget"


def chosen(**numbers: Any) -> Policy:
    return build_policy("classic", numbers)


def test_without_limits_everything_is_allowed() -> None:
    free = read_allowed({})
    assert free == Allowed()
    policy = chosen(input_token_budget=0, summary_breaker=9)
    demand_allowed(policy, OWN, free)
    assert clamp_policy(policy, OWN, free) == policy
    assert free.limits("summary_breaker") == (1, 100)
    assert free.limits("compaction_enabled") is None


@pytest.mark.parametrize(
    ("value", "near"), [(0, 10_000), (10_000, 10_000), (40_000, 40_000), (70_000, 60_000)]
)
def test_a_number_stays_within_its_limits(value: int, near: int) -> None:
    allowed = read_allowed({BUDGET: [10_000, 60_000]})
    policy = chosen(input_token_budget=value)
    assert clamp_policy(policy, OWN, allowed).input_token_budget == near
    if value == near:
        demand_allowed(policy, OWN, allowed)
        return
    with pytest.raises(PolicyError, match="from 10,000 to 60,000 for this account") as caught:
        demand_allowed(policy, OWN, allowed)
    assert caught.value.field == BUDGET


@pytest.mark.parametrize(
    ("limits", "wide"), [([None, 60_000], (0, 60_000)), ([5, None], (5, 10_000_000))]
)
def test_an_open_end_is_that_of_the_policy(limits: Any, wide: tuple[int, int]) -> None:
    assert read_allowed({BUDGET: limits}).limits(BUDGET) == wide


def test_a_limit_is_for_what_was_chosen_not_for_what_the_account_gives() -> None:
    allowed = read_allowed({BUDGET: [None, 10_000]})
    same = chosen(summary_breaker=5)
    demand_allowed(same, OWN, allowed)
    assert clamp_policy(same, OWN, allowed) == same


def test_a_preset_is_held_to_the_limits_too() -> None:
    allowed = read_allowed({BUDGET: [1, None], "compaction_enabled": "fixed"})
    assert clamp_policy(PRESETS["off"], OWN, allowed).input_token_budget == 1
    assert clamp_policy(PRESETS["off"], OWN, allowed).compaction_enabled
    with pytest.raises(PolicyError, match="for this account"):
        demand_allowed(PRESETS["off"], OWN, allowed)


@pytest.mark.parametrize("name", ["compaction_enabled", "verbatim_tools", "summary_breaker"])
def test_what_is_fixed_is_the_owners(name: str) -> None:
    allowed = read_allowed({name: "fixed"})
    assert allowed.is_fixed(name)
    numbers = {"compaction_enabled": False, "verbatim_tools": ["x"], "summary_breaker": 7}
    policy = chosen(**{name: numbers[name]})
    assert getattr(clamp_policy(policy, OWN, allowed), name) == getattr(OWN, name)
    with pytest.raises(PolicyError, match="cannot be changed for this account"):
        demand_allowed(policy, OWN, allowed)


def test_numbers_that_the_limits_put_at_odds_leave_the_owners() -> None:
    allowed = read_allowed({"compaction_threshold_tokens": [None, 90_000]})
    policy = chosen(input_token_budget=95_000, compaction_threshold_tokens=120_000)
    assert clamp_policy(policy, OWN, allowed) == OWN


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ([], "policy_limits"), ({"nonsense": [1, 2]}, "nonsense"), ({"pins": "fixed"}, "pins"),
        ({BUDGET: 5}, BUDGET), ({BUDGET: [1]}, BUDGET), ({BUDGET: [None, None]}, BUDGET),
        ({BUDGET: [9, 8]}, BUDGET), ({BUDGET: [True, 8]}, BUDGET), ({BUDGET: ["1", 8]}, BUDGET),
        ({BUDGET: [-1, 8]}, BUDGET), ({BUDGET: [1, 10_000_001]}, BUDGET),
        ({"compaction_enabled": [0, 1]}, "compaction_enabled"),
    ],
)  # fmt: skip
def test_what_is_no_limit_is_refused_by_its_field(data: Any, field: str) -> None:
    with pytest.raises(PolicyError) as caught:
        read_allowed(data)
    assert caught.value.field == field


@given(st.data())
def test_what_is_within_is_allowed_or_the_owners_own(data: Any) -> None:
    names = st.sampled_from(sorted(BOUNDS))
    limits, numbers = {}, {}
    for name in data.draw(st.sets(names, max_size=4)):
        whole = st.integers(*BOUNDS[name])
        limits[name] = sorted((data.draw(whole), data.draw(whole)))
        numbers[name] = data.draw(whole)
    try:
        policy = build_policy("classic", numbers)
    except PolicyError:
        return
    allowed = read_allowed(limits)
    found = clamp_policy(policy, OWN, allowed)
    demand_allowed(found, OWN, allowed)
    assert clamp_policy(found, OWN, allowed) == found
