"""A budget's present window, as numbers and as a bar."""

from __future__ import annotations

from django.utils import timezone
from django.utils.html import format_html

from conversations.models import Budget, BudgetWindow
from conversations.services.budgets import window_bounds
from conversations.templatetags.agentweb import dollars


def present_window(budget: Budget) -> BudgetWindow | None:
    """Give the window of now; None before its first use."""
    start, _ = window_bounds(budget.period, timezone.now())
    return budget.windows.filter(starts_at=start).first()


def bar(budget: Budget, window: BudgetWindow | None) -> str:
    """Draw what is spent and held of the limit."""
    spent = window.spent_micros + window.overrun_micros if window else 0
    held = window.held_micros if window else 0
    used, limit = spent + held, budget.limit_micros
    return format_html(
        '<progress class="used" max="{}" value="{}">{}</progress> {} spent{} of {}',
        max(limit, 1),
        min(used, limit),
        dollars(used),
        dollars(spent),
        f", {dollars(held)} held" if held else "",
        dollars(limit),
    )
