"""When a budget starts anew is said as the clocks of its time zone show it, whatever they do."""

from __future__ import annotations

import re
from datetime import datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from conversations.budgets.effective import BudgetStatus, Rule
from conversations.budgets.refusals import build_limit_refusal
from conversations.models.periods import compute_bounds, load_zone
from tests.models.test_periods import PERIODS, places

_SAID = re.compile(r" It starts anew on (\d+ \w+ \d{4} at \d\d:\d\d) \((\S+)\)\.$")


@settings(max_examples=200)
@given(places, st.sampled_from(PERIODS), st.sampled_from(("money", "tokens", "turns")))
def test_the_reset_that_is_said_is_the_end_of_the_window(
    place: tuple[str, datetime], period: str, unit: str
) -> None:
    zone, now = place
    starts, ends = compute_bounds(period, zone, now)
    assert ends is not None
    rule = Rule(1, "user", "per_member", unit, period, zone, 10)
    text = build_limit_refusal(BudgetStatus(rule, starts, ends, 10, 9, 1), 5).text
    said = _SAID.search(text)
    assert said is not None
    shown = ends.astimezone(load_zone(zone)).replace(second=0, microsecond=0, tzinfo=None)
    assert datetime.strptime(said[1], "%d %B %Y at %H:%M") == shown  # noqa: DTZ007
    assert said[2] == zone


def test_a_lifetime_is_not_said_to_start_anew() -> None:
    starts, ends = compute_bounds("lifetime", "UTC", datetime.fromisoformat("2026-11-21T00:00Z"))
    rule = Rule(1, "user", "per_member", "money", "lifetime", "UTC", 10)
    assert "anew" not in build_limit_refusal(BudgetStatus(rule, starts, ends, 10, 9, 1), 5).text
