"""Texts of refusals: which limit a call does not fit in, its present use, and until when."""

from __future__ import annotations

from datetime import datetime

from conversations.agent.ports import Refused
from conversations.budgets.effective import BudgetStatus
from conversations.budgets.units import UNITS
from conversations.models.periods import format_moment
from conversations.rendering.numbers import dollars

_ADJECTIVES = {
    "hour": "hourly", "day": "daily", "week": "weekly", "month": "monthly", "lifetime": "lifetime"
}  # fmt: skip


def build_limit_refusal(status: BudgetStatus, amount: int) -> Refused:
    """Build the refusal of a call that needs `amount` more than a budget has left."""
    rule, unit = status.rule, UNITS[status.rule.unit]
    whose = f"{rule.model_name}, {rule.source}" if rule.model else rule.source
    what = f"The {_ADJECTIVES[rule.period]} budget of {unit.show(status.limit)} ({whose})"
    why = unit.refusal.format(used=unit.show(status.spent + status.held), amount=unit.show(amount))
    text = f"{what} {why}" + _describe_reset(status.ends_at, rule.zone)
    if rule.model:
        text += f" It counts {rule.model_name} alone: choose another model to go on at once."
    return Refused("budget", text)


def build_turn_refusal(limit: int, spent: int, amount: int) -> Refused:
    """Build the refusal of a call with which its turn would exceed the cap on money."""
    return Refused(
        "turn_money",
        f"This turn may cost {dollars(limit)}: {dollars(spent)} is spent, and another call may cost"
        f" up to {dollars(amount)}. Send a message to go on.",
    )


def _describe_reset(ends: datetime | None, zone: str) -> str:
    if ends is None:
        return ""
    return f" It starts anew on {format_moment(ends, zone)}."
