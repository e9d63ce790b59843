"""Texts of refusals: which limit a call does not fit in, its present use, and until when.

Turns keep them, so they are in English whoever asks; pages translate them.
"""

from __future__ import annotations

from datetime import datetime

from django.utils import translation
from django.utils.translation import gettext_noop

from conversations.agent.ports import Refused
from conversations.budgets.effective import BudgetStatus
from conversations.budgets.units import UNITS
from conversations.context.translation import mark_recorded
from conversations.models.periods import format_moment
from conversations.rendering.numbers import dollars

_NAMES = {
    "hour": "The hourly budget", "day": "The daily budget", "week": "The weekly budget",
    "month": "The monthly budget", "lifetime": "The lifetime budget",
}  # fmt: skip
_OF_TURN = mark_recorded(
    gettext_noop(
        "This turn may cost %(limit)s: %(used)s is spent, and another call may cost up to"
        " %(amount)s. Send a message to go on."
    )
)
_OF_MODEL = mark_recorded(
    gettext_noop("It counts %(model)s alone: choose another model to go on at once.")
)
_RESET = mark_recorded(gettext_noop("It starts anew on %(date)s."))


def build_limit_refusal(status: BudgetStatus, amount: int) -> Refused:
    """Build the refusal of a call that needs `amount` more than a budget has left."""
    rule, unit = status.rule, UNITS[status.rule.unit]
    amounts = {"limit": status.limit, "used": status.spent + status.held, "amount": amount}
    with translation.override("en"):
        values = {name: unit.show(each) for name, each in amounts.items()}
    values["budget"] = _NAMES[rule.period]
    values["whose"] = f"{rule.model_name}, {rule.source}" if rule.model else rule.source
    text = unit.refusal % values
    text += _describe_reset(status.ends_at, rule.zone)
    if rule.model:
        text += " " + _OF_MODEL % {"model": rule.model_name}
    return Refused("budget", text)


def build_turn_refusal(limit: int, spent: int, amount: int) -> Refused:
    """Build the refusal of a call with which its turn would exceed the cap on money."""
    with translation.override("en"):
        values = {"limit": dollars(limit), "used": dollars(spent), "amount": dollars(amount)}
    return Refused("turn_money", _OF_TURN % values)


def _describe_reset(ends: datetime | None, zone: str) -> str:
    return f" {_RESET % {'date': format_moment(ends, zone)}}" if ends else ""
