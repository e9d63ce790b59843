"""The cost of one person's calls within a span: three queries, whatever the span."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from conversations.budgets.usage.days import Span
from conversations.budgets.usage.erased import list_erased_within
from conversations.budgets.usage.groups import (
    Group,
    group_calls,
    name_model,
    name_purpose,
    sum_lines,
)
from conversations.budgets.usage.sums import SUMS, Figures, Line, add_figures, filter_calls_within
from conversations.models import ApiCall, User

#: Conversations with a row of their own; the others share one row.
MOST_CONVERSATIONS = 10


@dataclass(frozen=True, slots=True)
class Usage:
    span: Span
    total: Figures
    groups: tuple[Group, ...]
    models: tuple[Line, ...]
    purposes: tuple[Line, ...]
    conversations: tuple[Line, ...]


def sum_usage(user: User, span: Span, *, is_named: bool = True) -> Usage:
    """Add up a person's calls; without `is_named`, conversations are shown by their ids."""
    calls = filter_calls_within(span).filter(conversation__owner=user)
    groups = group_calls(calls, list_erased_within(span, owner_id=user.pk))
    return Usage(
        span=span,
        total=add_figures(group.figures for group in groups),
        groups=groups,
        models=sum_lines(groups, name_model),
        purposes=sum_lines(groups, name_purpose),
        conversations=_sum_conversations(calls, groups, is_named=is_named),
    )


def _sum_conversations(
    calls: QuerySet[ApiCall], groups: tuple[Group, ...], *, is_named: bool
) -> tuple[Line, ...]:
    """Return the most expensive conversations, all others as one line, and the erased as one."""
    names = ("conversation__public_id", "conversation__title", "conversation__deleted_at")
    rows = calls.values("conversation_id", *names).annotate(**SUMS)
    top = rows.order_by("-micros", "conversation_id")[:MOST_CONVERSATIONS]
    found = [_build_line(row, is_named=is_named) for row in top]
    kept = add_figures(group.figures for group in groups if group.purpose)
    rest = kept - add_figures(line.figures for line in found)
    erased = add_figures(group.figures for group in groups if not group.purpose)
    others = (Line(_("All others"), rest), Line(_("Erased chats"), erased))
    return (*found, *(line for line in others if line.figures.calls))


def _build_line(row: dict[str, Any], *, is_named: bool) -> Line:
    public_id, figures = row["conversation__public_id"], Figures.of(row)
    if not is_named:
        name = "admin:conversations_conversation_change"
        return Line(str(public_id)[:8], figures, reverse(name, args=[row["conversation_id"]]))
    is_shown = row["conversation__deleted_at"] is None
    title = row["conversation__title"] or _("New chat")
    return Line(title, figures, reverse("chat", args=[public_id]) if is_shown else "")
