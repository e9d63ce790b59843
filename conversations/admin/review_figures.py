"""What the list of conversations shows of each: cost, reductions, tokens freed, recalls.

The figures of a page are added up for its rows alone, in three statements; an order by one of them
adds up that one for all conversations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.db.models import Count, F, Model, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest

from conversations.admin.content_access import may_read
from conversations.models import ApiResult, ToolCall, Transformation

_APPLIED = Q(outcome=Transformation.Outcome.APPLIED)
_REJECTED = Q(outcome=Transformation.Outcome.REJECTED, kind="summary")
_RECALLED = Q(name="recall", state=ToolCall.State.OK)
_FREED = F("tokens_before") - F("tokens_after")


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


def _order(rows: QuerySet[Any], path: str, figure: Any) -> Coalesce:
    """Return the figure of a conversation from rows that lead to it by `path`, to order by."""
    grouped = rows.filter(**{path: OuterRef("pk")}).order_by().values(path)
    return Coalesce(Subquery(grouped.annotate(figure=figure).values("figure")), 0)


BY_COST = _order(ApiResult.objects.all(), "call__conversation", Sum("cost_micros"))
BY_REDUCTIONS = _order(Transformation.objects.filter(_APPLIED), "conversation", Count("pk"))
BY_FREED = _order(Transformation.objects.filter(_APPLIED), "conversation", Sum(_FREED))
BY_REJECTED = _order(Transformation.objects.filter(_REJECTED), "conversation", Count("pk"))
BY_RECALLS = _order(ToolCall.objects.filter(_RECALLED), "turn__conversation", Count("pk"))


def add_up_figures(keys: list[int]) -> dict[int, Figures]:
    """Return the figures of conversations by their keys; three statements."""
    costs = _sum(ApiResult, "call__conversation", keys, cost=Sum("cost_micros"))
    changes = _sum(
        Transformation, "conversation", keys,
        reductions=Count("pk", filter=_APPLIED),
        freed=Coalesce(Sum(_FREED, filter=_APPLIED), 0),
        rejected=Count("pk", filter=_REJECTED),
    )  # fmt: skip
    recalls = _sum(ToolCall, "turn__conversation", keys, recalls=Count("pk", filter=_RECALLED))
    return {
        key: Figures(**costs.get(key, {}), **changes.get(key, {}), **recalls.get(key, {}))
        for key in keys
    }


def _sum(
    model: type[Model], path: str, keys: list[int], **figures: Any
) -> dict[int, dict[str, int]]:
    rows = model._default_manager.filter(**{f"{path}__in": keys}).order_by()
    found = rows.values(path).annotate(**figures)
    return {row.pop(path): row for row in found}


class ReviewedConversations(ChangeList):
    """A page of conversations, each with its figures and whether the inspector opens to a user."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        found = add_up_figures([row.pk for row in self.result_list])
        for row in self.result_list:
            row.figures, row.is_readable = found[row.pk], may_read(request, row)
