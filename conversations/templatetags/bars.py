"""Bars of budgets as SVG without inline styles, with their figures; numbers of policies."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from conversations.budgets.effective import Rule, compute_percent
from conversations.budgets.units import show_amount
from conversations.models.budgets import Budget, BudgetUnit
from conversations.models.periods import format_moment
from conversations.rendering.numbers import write_number
from conversations.templatetags.recorded import show_moment

register = template.Library()

#: Items of a list that are shown.
MOST_WORDS = 4


@register.simple_tag
def bar(spent: int, held: int, limit: int, unit: str) -> SafeString:
    """Draw the spent and the held part of a limit."""
    amounts = {"spent": spent, "held": held, "limit": limit}
    held_too = _("%(spent)s spent, %(held)s held of %(limit)s")
    words = held_too if held else _("%(spent)s spent of %(limit)s")
    over = " is-over" if spent >= limit else ""
    return format_html(
        '<span class="budget{}"><svg class="budget-bar" aria-hidden="true">'
        '<rect class="budget-track" width="100%" height="100%"/>'
        '<rect class="budget-held" width="{}%" height="100%"/>'
        '<rect class="budget-spent" width="{}%" height="100%"/></svg>'
        '<span class="budget-words">{}</span></span>',
        over,
        compute_percent(spent + held, limit),
        compute_percent(spent, limit),
        words % {name: show_amount(amount, unit) for name, amount in amounts.items()},
    )


@register.filter
def in_zone(at: datetime | None, zone: str) -> str:
    """Format a moment in the time zone of a budget."""
    return "–" if at is None else show_moment(format_moment(at, zone))


@register.filter
def rule_name(rule: Rule) -> str:
    """Name a budget by its period and what it counts."""
    return f"{Budget.Period(rule.period).label}, {BudgetUnit(rule.unit).label}"


@register.filter
def number(value: Any) -> str:
    """Format a number of the context policy."""
    match value:
        case bool():
            return _("on") if value else _("off")
        case int():
            return write_number(value)
        case _:
            rest = len(value) - MOST_WORDS
            words = [str(word) for word in value[:MOST_WORDS]]
            more = [_("%(count)d more") % {"count": rest}] if rest > 0 else []
            return ", ".join(words + more) or "–"
