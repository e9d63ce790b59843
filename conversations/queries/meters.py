"""How full the context is and how much money is left, as the page shows it."""

from __future__ import annotations

from django.db.models import F, Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.context.errors import ContextError
from conversations.models import (
    ApiModel,
    ApiResult,
    Budget,
    BudgetWindow,
    Conversation,
    Message,
    Transformation,
)
from conversations.queries.policies import effective_policy
from conversations.queries.shapes import BudgetPill, Meter, Tick
from conversations.services.budgets import window_bounds


def meter(conversation: Conversation) -> Meter:
    """Give the figure of the last reply, moved by what was appended and reduced since."""
    model = ApiModel.objects.filter(pk=conversation.model).first()
    window = model.window if model else 200_000
    last = (
        ApiResult.objects.filter(call__conversation=conversation, call__purpose="reply")
        .exclude(input_tokens=None)
        .select_related("call")
        .defer("usage")
        .order_by("-pk")
        .first()
    )
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


def _unmeasured(conversation: Conversation, window: int) -> Meter:
    """Estimate a conversation that no call has measured, such as an imported one."""
    messages = Message.objects.filter(conversation=conversation)
    tokens = messages.aggregate(sum=Sum("estimate"))["sum"] or 0
    source = "estimated" if tokens else "none"
    percent = min(100, tokens * 100 // window)
    return Meter(tokens, window, percent, source, None, _ticks(conversation, window))


def _moved(conversation: Conversation, last: ApiResult) -> int:
    """Estimate the tokens that came and went behind the call of that result and its answer."""
    later = Message.objects.filter(conversation=conversation, seq__gt=last.call.tip)
    added = later.exclude(pk=last.answer_id or 0).aggregate(sum=Sum("estimate"))["sum"]
    changes = Transformation.objects.filter(
        conversation=conversation, outcome="applied", seq__gt=last.call.tip
    )
    freed = changes.aggregate(sum=Sum(F("tokens_before") - F("tokens_after")))["sum"]
    return (added or 0) - (freed or 0)


def _ticks(conversation: Conversation, window: int) -> tuple[Tick, ...]:
    try:
        policy = effective_policy(conversation)
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


def budget_pill(user_id: int) -> BudgetPill:
    """Give the tightest of the user's budgets; two queries."""
    budgets = list(Budget.objects.filter(user_id=user_id, is_active=True))
    if not budgets:
        return BudgetPill(False, 0, 0, 0, _("No limit"), None, False)
    now = timezone.now()
    starts = {budget.pk: window_bounds(budget.period, now) for budget in budgets}
    present = {starting for starting, _ending in starts.values()}
    windows = {
        row.budget_id: row
        for row in BudgetWindow.objects.filter(budget__in=budgets, starts_at__in=present)
        if row.starts_at == starts[row.budget_id][0]
    }
    pills = [_pill(budget, windows.get(budget.pk), starts[budget.pk][1]) for budget in budgets]
    return max(pills, key=lambda pill: pill.percent)


def _pill(budget: Budget, window: BudgetWindow | None, resets: object) -> BudgetPill:
    spent = window.spent_micros + window.overrun_micros if window else 0
    limit = budget.limit_micros
    percent = min(100, spent * 100 // limit) if limit else 100
    label = {"day": _("today"), "month": _("this month"), "lifetime": _("in all")}[budget.period]
    return BudgetPill(True, spent, limit, percent, label, resets, spent >= limit)  # type: ignore[arg-type]
