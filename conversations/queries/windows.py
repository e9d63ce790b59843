"""A budget's present window, as numbers and as a bar."""

from __future__ import annotations

from django.utils import timezone
from django.utils.html import format_html

from conversations.models import Budget, BudgetWindow
from conversations.periods import bounds
from conversations.templatetags.agentweb import worth


def present_window(budget: Budget) -> BudgetWindow | None:
    """Give the window of now of a person's own budget; None before its first use."""
    start, _ = bounds(budget.period, budget.time_zone, timezone.now())
    return budget.windows.filter(starts_at=start, user=budget.user_id).first()


def bar(budget: Budget, window: BudgetWindow | None) -> str:
    """Draw what is spent and held of the limit."""
    spent = window.spent + window.overrun if window else 0
    held = window.held if window else 0
    used, limit = spent + held, budget.limit
    return format_html(
        '<progress class="used" max="{}" value="{}">{}</progress> {} spent{} of {}',
        max(limit, 1),
        min(used, limit),
        worth(used, budget.unit),
        worth(spent, budget.unit),
        f", {worth(held, budget.unit)} held" if held else "",
        worth(limit, budget.unit),
    )
