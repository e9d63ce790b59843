"""How full the context is and how much money is left, as the page shows it.

Only what lies on the shown path fills the context.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext as _

from conversations.allowances import Rule, Standing
from conversations.context.errors import ContextError
from conversations.models import Conversation
from conversations.queries.figures import estimate, figures
from conversations.queries.policies import effective_numbers
from conversations.queries.shapes import BudgetPill, Meter, Tick


def meter(conversation: Conversation) -> Meter:
    """Give how full the context is, and what the conversation has cost; two statements at most.

    The figure is that of the last reply, moved by what was appended and reduced since; where no
    call has measured anything (imported, or at its first answer), it is estimated.
    """
    found = figures(conversation)
    window = found.window or 200_000
    cached = None
    if found.reported is None:
        tokens = estimate(conversation)
        source = "estimated" if tokens else "none"
    else:
        tokens = max(0, found.reported + found.moved)
        source = "estimated" if found.moved else "reported"
        cached = found.cached * 100 // found.context if found.context else None
    percent = min(100, tokens * 100 // window)
    ticks = _ticks(conversation, window)
    paid = {"cost_micros": found.cost_micros, "calls": found.calls}
    return Meter(tokens, window, percent, source, cached, ticks, **paid)


def _ticks(conversation: Conversation, window: int) -> tuple[Tick, ...]:
    try:
        policy = effective_numbers(conversation)
    except ContextError:
        return ()
    share = policy.room(window) * policy.compact_above_percent // 100
    marks = [
        (policy.input_token_budget, _("tool results are compacted")),
        (share, _("the context is reduced at once")),
    ]
    if policy.compaction_enabled:
        marks.append((policy.compaction_threshold_tokens, _("a summary is built")))
    return tuple(
        Tick(threshold * 100 // window, f"{threshold:,}: {label}")
        for threshold, label in marks
        if 0 < threshold < window
    )


def budget_pill(found: Iterable[Standing], stopped_by: Rule | None = None) -> BudgetPill:
    """Show the budget that stops the person, else the tightest of those that count."""
    rows = list(found)
    if not rows:
        return BudgetPill(False, 0, 0, 0, _("No limit"), None, False)
    stopping = [one for one in rows if one.rule == stopped_by]
    one = max(stopping or rows, key=lambda one: (one.percent, one.spent + one.held))
    labels = {
        "hour": _("this hour"),
        "day": _("today"),
        "week": _("this week"),
        "month": _("this month"),
        "lifetime": _("in all"),
    }
    return BudgetPill(
        True, one.spent, one.limit, one.percent, labels[one.rule.period], one.ends_at,
        is_over=bool(stopping), unit=one.rule.unit, source=one.rule.own_source, held=one.held,
    )  # fmt: skip
