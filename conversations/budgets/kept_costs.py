"""The sums that a conversation keeps of its calls (log/chain.py), compared with their results."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import Count, F, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from conversations.db import transact
from conversations.log.chain import lock_conversation, save_columns
from conversations.log.findings import Problem, split_chunks
from conversations.log.page_version import raise_locked
from conversations.models import ApiResult, Conversation

_SUMS = {"ended_calls": Count("pk"), "cost_micros": Sum("cost_micros")}


def check_kept_costs(conversation: Conversation) -> Iterator[Problem]:
    """Yield a problem for each sum that differs: the page would show a wrong cost."""
    for row in _find_wrong([conversation.pk]):
        for name in _SUMS:
            kept, due = getattr(row, name), getattr(row, f"due_{name}")
            if kept != due:
                what = f"its {name} is {kept}, not {due}; `manage.py ledger recompute` sets it"
                yield Problem("conversation", str(row.pk), what, str(row.public_id))


def recompute_costs() -> int:
    """Set the sums of all conversations to what their results say; return how many differed."""
    keys = list(Conversation.objects.order_by("pk").values_list("pk", flat=True))
    wrong = [row.pk for some in split_chunks(keys) for row in _find_wrong(some)]
    for key in wrong:
        with contextlib.suppress(Conversation.DoesNotExist):  # erased meanwhile
            _recompute(key)
    return len(wrong)


@transact
def _recompute(key: int) -> None:
    row = lock_conversation(key)
    for due in _find_wrong([key]):
        for name in _SUMS:
            setattr(row, name, int(getattr(due, f"due_{name}")))
        raise_locked(row)
        save_columns(row, (*_SUMS, "version"))


def _find_wrong(keys: Sequence[int]) -> QuerySet[Any]:
    """Return those of these conversations whose sums differ, with the sums that are due."""
    results = ApiResult.objects.filter(call__conversation=OuterRef("pk")).order_by()
    by_conversation = results.values("call__conversation")
    due = {
        f"due_{name}": Coalesce(Subquery(by_conversation.annotate(sum=one).values("sum")), 0)
        for name, one in _SUMS.items()
    }
    rows = Conversation.objects.filter(pk__in=keys).annotate(**due).order_by("pk")
    return rows.exclude(**{name: F(f"due_{name}") for name in _SUMS})
