"""Texts of refusals: which limit a call does not fit in, its present use, and until when.

Turns keep them, so they are in English whoever asks; pages translate them.
"""

from __future__ import annotations

from datetime import datetime

from django.utils import translation
from django.utils.translation import gettext_noop

from conversations.agent.ports import RateLimitReached, Refused
from conversations.budgets.effective import BudgetStatus, Rule
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
_FITS_NEVER = mark_recorded(
    gettext_noop(
        "This call may use up to %(amount)s, and the limit of %(limit)s a minute (%(whose)s) never"
        " allows that. A new or a shorter chat needs less."
    )
)
_REACHED = mark_recorded(gettext_noop("The limit of %(limit)s a minute (%(whose)s) is reached."))
_RESET = mark_recorded(gettext_noop("It starts anew on %(date)s."))


def build_limit_refusal(status: BudgetStatus, amount: int) -> Refused:
    """Build the refusal of a call that needs `amount` more than a budget has left."""
    rule, unit = status.rule, UNITS[status.rule.unit]
    amounts = {"limit": status.limit, "used": status.spent + status.held, "amount": amount}
    with translation.override("en"):
        values = {name: unit.show(each) for name, each in amounts.items()}
    values["whose"] = _describe_source(rule)
    if rule.is_rate:
        return Refused("budget", _FITS_NEVER % values)
    values["budget"] = _NAMES[rule.period]
    text = unit.refusal % values
    text += _describe_reset(status.ends_at, rule.zone)
    if rule.model:
        text += " " + _OF_MODEL % {"model": rule.model_name}
    return Refused("budget", text)


def build_rate_refusal(status: BudgetStatus, now: datetime) -> RateLimitReached:
    """Build the refusal of a call that fits in the next minute, and not in this one."""
    rule, ends = status.rule, status.ends_at or now
    with translation.override("en"):
        limit = UNITS[rule.unit].show(status.limit)
    text = _REACHED % {"limit": limit, "whose": _describe_source(rule)}
    return RateLimitReached(
        "rate_limit",
        text + _describe_reset(ends, rule.zone),
        seconds=max(0.0, (ends - now).total_seconds()),
        waits_for=f"{rule.unit} {status.limit} {rule.model}".strip(),
    )


def _describe_source(rule: Rule) -> str:
    return f"{rule.model_name}, {rule.source}" if rule.model else rule.source


def build_turn_refusal(limit: int, spent: int, amount: int) -> Refused:
    """Build the refusal of a call with which its turn would exceed the cap on money."""
    with translation.override("en"):
        values = {"limit": dollars(limit), "used": dollars(spent), "amount": dollars(amount)}
    return Refused("turn_money", _OF_TURN % values)


def _describe_reset(ends: datetime | None, zone: str) -> str:
    return f" {_RESET % {'date': format_moment(ends, zone)}}" if ends else ""
