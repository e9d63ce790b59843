"""How full the context is and how much money is left, as the page shows it.

Only what lies on the shown path fills the context.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from django.db.models import Count, F, Sum
from django.utils.translation import gettext as _

from conversations.allowances import Rule, Standing
from conversations.context.errors import ContextError
from conversations.models import (
    ApiCall,
    ApiModel,
    ApiResult,
    Conversation,
    Message,
    Transformation,
)
from conversations.queries.branches import ALL, NEAR, on_path
from conversations.queries.policies import effective_numbers
from conversations.queries.shapes import BudgetPill, Meter, Tick


def meter(conversation: Conversation) -> Meter:
    """Give how full the context is, and what the conversation has cost."""
    results = ApiResult.objects.filter(call__conversation=conversation)
    spent = results.aggregate(cost=Sum("cost_micros"), calls=Count("pk"))
    return replace(_gauge(conversation), cost_micros=spent["cost"] or 0, calls=spent["calls"] or 0)


def _gauge(conversation: Conversation) -> Meter:
    """Give the figure of the last reply, moved by what was appended and reduced since."""
    model = ApiModel.objects.filter(pk=conversation.model).first()
    window = model.window if model else 200_000
    # Nearly always one of the last turns has a reply; a long path is read only where none has.
    last = _last_reply(conversation, NEAR) or _last_reply(conversation, ALL)
    if last is None:
        return _unmeasured(conversation, window)
    context = (
        (last.input_tokens or 0) + (last.cache_read_tokens or 0) + (last.cache_write_tokens or 0)
    )
    moved = _moved(conversation, last)
    tokens = max(0, context + (last.output_tokens or 0) + moved)
    cached = (last.cache_read_tokens or 0) * 100 // context if context else None
    source = "estimated" if moved else "reported"
    percent = min(100, tokens * 100 // window)
    return Meter(tokens, window, percent, source, cached, _ticks(conversation, window))


def _last_reply(conversation: Conversation, most: int) -> ApiResult | None:
    """Give the last result with figures among so many turns from the end of the shown path."""
    results = ApiResult.objects.filter(
        on_path("call__turn", conversation, most=most),
        call__conversation=conversation,
        call__purpose="reply",
    )
    found = results.exclude(input_tokens=None).select_related("call", "call__turn")
    return found.defer("usage").order_by("-pk").first()


def _unmeasured(conversation: Conversation, window: int) -> Meter:
    """Estimate a conversation that no call has measured: imported, or at its first answer."""
    messages = Message.objects.filter(on_path("turn", conversation))
    tokens = messages.aggregate(sum=Sum("estimate"))["sum"] or 0
    # What goes with every request is known as soon as one was sent.
    sent = ApiCall.objects.filter(conversation=conversation, purpose="reply").order_by("-pk")
    tokens += sent.values_list("overhead_tokens", flat=True).first() or 0
    source = "estimated" if tokens else "none"
    percent = min(100, tokens * 100 // window)
    return Meter(tokens, window, percent, source, None, _ticks(conversation, window))


def _moved(conversation: Conversation, last: ApiResult) -> int:
    """Estimate the tokens that came and went behind the call of that result and its answer."""
    turns = on_path("turn", conversation, start=last.call.turn.number)
    later = Message.objects.filter(turns, seq__gt=last.call.tip)
    added = later.exclude(pk=last.answer_id or 0).aggregate(sum=Sum("estimate"))["sum"]
    # One that was taken back is on no path, but the entry that took it back says so in numbers.
    changes = Transformation.objects.filter(turns, outcome="applied", seq__gt=last.call.tip)
    freed = changes.aggregate(sum=Sum(F("tokens_before") - F("tokens_after")))["sum"]
    return (added or 0) - (freed or 0)


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
