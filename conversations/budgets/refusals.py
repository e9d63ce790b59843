"""Why a call is not admitted, in words: which limit, what is used of it, and until when."""

from __future__ import annotations

from datetime import datetime

from conversations.agent.ports import Refused
from conversations.budgets.effective import BudgetStatus
from conversations.models.periods import format_moment
from conversations.rendering.numbers import dollars, worth

_ADJECTIVES = {
    "hour": "hourly", "day": "daily", "week": "weekly", "month": "monthly", "lifetime": "lifetime"
}  # fmt: skip


def build_limit_refusal(status: BudgetStatus, amount: int) -> Refused:
    """Say that a budget does not allow a call of so much."""
    rule = status.rule
    limit, used = worth(status.limit, rule.unit), worth(status.spent + status.held, rule.unit)
    what = f"The {_ADJECTIVES[rule.period]} budget of {limit} ({rule.source})"
    if rule.unit == "turns":
        text = f"{what} is used up: {used} were made or are on their way."
    else:
        verb = "is" if rule.unit == "money" else "are"
        text = (
            f"{what} does not allow another call: {used} {verb} spent or held, and this call may"
            f" {'cost' if rule.unit == 'money' else 'use'} up to {worth(amount, rule.unit)}."
        )
    return Refused("budget", text + _describe_reset(status.ends_at, rule.zone))


def build_turn_refusal(limit: int, spent: int, amount: int) -> Refused:
    """Say that a turn has cost what it may."""
    return Refused(
        "turn_money",
        f"This turn may cost {dollars(limit)}: {dollars(spent)} is spent, and another call may cost"
        f" up to {dollars(amount)}. Send a message to go on.",
    )


def _describe_reset(ends: datetime | None, zone: str) -> str:
    if ends is None:
        return ""
    return f" It starts anew on {format_moment(ends, zone)}."
