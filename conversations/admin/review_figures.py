"""What the list of conversations shows of each: cost, reductions, tokens freed, recalls.

The figures of a page are added up for its rows alone, in three statements. An order by one of them
adds up that one for all conversations, in a grouped statement that yields keys alone: asked of each
conversation by itself, PostgreSQL looks up every call; grouped with whole rows, it sorts them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum
from django.http import HttpRequest

from conversations.admin.content_access import may_read
from conversations.admin.keyed_page import KeyedPage
from conversations.models import Conversation, ToolCall, Transformation

_APPLIED = Q(transformations__outcome=Transformation.Outcome.APPLIED)
_REJECTED = Q(
    transformations__outcome=Transformation.Outcome.REJECTED, transformations__kind="summary"
)
_RECALLED = Q(turns__tool_calls__name="recall", turns__tool_calls__state=ToolCall.State.OK)
_FREED = F("transformations__tokens_before") - F("transformations__tokens_after")

#: Each figure of a conversation by its name.
_SUMS = {
    "cost": F("cost_micros"),
    "reductions": Count("transformations__conversation", filter=_APPLIED),
    "freed": Sum(_FREED, filter=_APPLIED, default=0),
    "rejected": Count("transformations__conversation", filter=_REJECTED),
    "recalls": Count("turns__tool_calls", filter=_RECALLED),
}
#: Those that are added up from the same rows.
_TOGETHER = (("cost",), ("reductions", "freed", "rejected"), ("recalls",))
BY_COST, BY_REDUCTIONS, BY_FREED, BY_REJECTED, BY_RECALLS = map(F, _SUMS)


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of one conversation; money in micro-dollars.

    `recalls` are the calls of `recall` that were answered: something taken away was needed again.
    """

    cost: int = 0
    reductions: int = 0
    freed: int = 0
    rejected: int = 0
    recalls: int = 0


def add_up_figures(keys: list[int]) -> dict[int, Figures]:
    """Return the figures of conversations by their keys; three statements."""
    rows = Conversation.objects.filter(pk__in=keys).order_by()
    found: dict[int, dict[str, int]] = {key: {} for key in keys}
    for names in _TOGETHER:
        for row in _add_up(rows, names):
            found[row.pop("pk")] |= row
    return {key: Figures(**figures) for key, figures in found.items()}


def _add_up(rows: QuerySet[Any], names: Iterable[str]) -> Any:
    """Return the keys of conversations with some of their figures."""
    return rows.values("pk").annotate(**{name: _SUMS[name] for name in names})


class ReviewedConversations(KeyedPage):
    """A page of conversations, each with its figures and whether the inspector opens to a user."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        found = add_up_figures([row.pk for row in self.result_list])
        for row in self.result_list:
            row.figures, row.is_readable = found[row.pk], may_read(request, row)

    def order_keys(self) -> QuerySet[Any, int]:
        wanted = _SUMS.keys() & map(_name_order, self.queryset.query.order_by)
        summed = _add_up(self.queryset.select_related(None), wanted)
        keys: QuerySet[Any, int] = summed.values_list("pk", flat=True)
        return keys


def _name_order(order: Any) -> str:
    """Return the name that a part of an order sorts by."""
    return str(getattr(getattr(order, "expression", None), "name", order))
