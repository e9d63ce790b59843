"""Erasure: the only way to delete rows of the log, in one transaction with the row that records it.

A conversation is erased completely: log, calls, drafts, pins, search index, and the texts that
nothing else references. The row that records the erasure is part of the site's hash chain and keeps
the last digest of the erased chain, so that anchors of it can still be explained. The spending
stays: the cost of the calls becomes one correcting entry in each budget window, so that windows
still equal the sum of their entries, and the erasure row keeps the cost by day and model.
Conversations in the trash and temporary ones are erased when their time is over, but not before
running turns have ended and every call has its result, and not under a legal hold
(log/legal_holds.py).
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from conversations.audit.content_checks import list_text_digests
from conversations.budgets.usage.closed_days import reopen_days
from conversations.library.erased_texts import digest_texts
from conversations.log.chain import append_row, append_rows, lock_site_chain
from conversations.log.erase_functions import erase_log, erase_texts
from conversations.log.fold_cache import fold_cache
from conversations.log.legal_holds import is_held
from conversations.log.texts import lock_texts_exclusively
from conversations.models import (
    IS_LIVE,
    ApiCall,
    Attachment,
    BudgetWindow,
    Conversation,
    Draft,
    Erasure,
    LedgerEntry,
    Proposal,
    QueuedPrompt,
    Reservation,
    SearchText,
    SharedLink,
    ToolCall,
    ToolSwitch,
    Turn,
    ViewCheckpoint,
)

logger = logging.getLogger("agentweb.erase")

TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
#: Conversations that one run erases at most.
MOST = 1_000


def erase_due_conversations(*, owner_id: int | None = None, now: datetime | None = None) -> int:
    """Erase due conversations, each in its own transaction; return how many were erased.

    One that cannot be erased is logged and does not block the others; the next run tries again.
    """
    now = now or timezone.now()
    _end_temporary(now)
    rows = _list_due(now)
    if owner_id is not None:
        rows = rows.filter(owner_id=owner_id)
    keys = list(rows.order_by("erase_at").values_list("pk", flat=True)[:MOST])
    return sum(_try_erasing(key, now) for key in keys)


def is_erasure_pending(*, owner_id: int) -> bool:
    """Return whether a due conversation of this person is still there: while its answer stops."""
    return _list_over(timezone.now()).filter(owner_id=owner_id).exists()


def _end_temporary(now: datetime) -> None:
    """Move temporary conversations whose time is over to the trash, where nothing is written."""
    live = Turn.objects.filter(IS_LIVE, conversation=OuterRef("pk"))
    over = Conversation.objects.filter(~is_held(), deleted_at=None, erase_at__lte=now)
    over.exclude(Exists(live)).update(deleted_at=now)


def _try_erasing(conversation_id: int, now: datetime | None) -> bool:
    try:
        return erase_conversation(conversation_id=conversation_id, now=now) is not None
    except Exception:
        logger.exception("conversation %d could not be erased", conversation_id)
        return False


def _list_due(now: datetime) -> QuerySet[Conversation]:
    live = Turn.objects.filter(IS_LIVE, conversation=OuterRef("pk"))
    open_calls = ApiCall.objects.filter(conversation=OuterRef("pk"), result=None)
    return _list_over(now).exclude(Exists(live)).exclude(Exists(open_calls))


def _list_over(now: datetime) -> QuerySet[Conversation]:
    return Conversation.objects.filter(~is_held(), erase_at__lte=now).exclude(deleted_at=None)


def erase_conversation(*, conversation_id: int, now: datetime | None = None) -> Erasure | None:
    """Erase a conversation that is due and record it; None when it is not due or not there."""
    due = _list_due(now or timezone.now()).filter(pk=conversation_id).first()
    if due is None:
        return None
    # In the trash nothing is written any more, so its texts are read before anything is locked.
    digests = digest_texts(conversation=due, beside=chain(*_list_rows(due)))
    with transaction.atomic():
        locked = Conversation.objects.select_for_update().filter(pk=conversation_id).first()
        if locked is None or not _list_due(now or timezone.now()).filter(pk=locked.pk).exists():
            return None
        lock_texts_exclusively()
        texts = {digest for digests in list_text_digests(locked.pk) for digest in digests}
        Conversation.objects.filter(forked_from__conversation=locked).update(forked_from=None)
        record = _build_record(locked)
        corrections, site = close_reservations(conversation=locked), lock_site_chain()
        # Placing a hold locks the same end: from here on none can come.
        if Conversation.objects.filter(is_held(), pk=locked.pk).exists():
            transaction.set_rollback(True)
            return None
        append_rows(corrections, site)
        append_row(record, site)
        reopen_days(locked.calls.all(), locked.turns.all(), locked.transformations.all())
        digests.erasure = record
        digests.save()
        beside, around = _list_rows(locked)
        for rows in beside:
            _drop(rows)
        erase_log(conversation_id=locked.pk)
        for rows in around:
            _drop(rows)
        erase_texts(digests=texts)
        fold_cache.take(locked.public_id)
        return record


def _list_rows(conversation: Conversation) -> tuple[list[QuerySet[Any]], list[QuerySet[Any]]]:
    """Return the rows outside the log, split into those to delete before it and after it."""
    turns = Turn.objects.filter(conversation=conversation)
    beside: list[QuerySet[Any]] = [
        SearchText.objects.filter(conversation=conversation),
        SharedLink.objects.filter(conversation=conversation),
        ToolSwitch.objects.filter(conversation=conversation),
        QueuedPrompt.objects.filter(conversation=conversation),
        Attachment.objects.filter(conversation=conversation),
        Draft.objects.filter(turn__in=turns),
        ViewCheckpoint.objects.filter(conversation=conversation),
        Proposal.objects.filter(conversation=conversation),
        ToolCall.objects.filter(turn__in=turns),
    ]
    return beside, [turns, Conversation.objects.filter(pk=conversation.pk)]


def _drop(rows: QuerySet[Any]) -> None:
    # `delete` would load all rows to check protected relations; the order above makes that
    # unnecessary.
    rows._raw_delete(rows.db)


def _build_record(conversation: Conversation) -> Erasure:
    """Build the row that records the erasure, with the figures of the erased rows."""
    assert conversation.deleted_at is not None  # noqa: S101 - it is due
    assert conversation.erase_at is not None  # noqa: S101
    calls = ApiCall.objects.filter(conversation=conversation)
    sums = {name: Sum(f"result__{name}") for name in (*TOKENS, "cost_micros")}
    kinds = ("day", "model", "cost_centre")
    days = calls.annotate(day=TruncDate("sent_at", tzinfo=UTC)).values(*kinds)
    rows = days.annotate(calls=Count("pk"), **sums).order_by(*kinds)
    usage = [_build_usage(dict[str, Any](row)) for row in rows]
    return Erasure(
        owner_id=conversation.owner_id,
        conversation=conversation.public_id,
        begun_at=conversation.created_at,
        deleted_at=conversation.deleted_at,
        due_at=conversation.erase_at,
        rule=conversation.removed_by_rule,
        messages=conversation.messages.count(),
        transformations=conversation.transformations.count(),
        calls=calls.count(),
        links=conversation.links,
        tail=conversation.chain,
        cost_micros=sum(row["cost_micros"] for row in usage),
        usage=usage,
    )


def _build_usage(row: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a day and model; of a cost centre, too, if they count for one."""
    day, centre = row.pop("day").isoformat(), row.pop("cost_centre")
    figures = {name: value or 0 for name, value in row.items()}
    return {"day": day} | figures | ({} if centre is None else {"cost_centre": centre})


def close_reservations(*, conversation: Conversation) -> list[LedgerEntry]:
    """Settle open reservations and return one correction for each window they are in.

    The corrections replace the entries of the conversation: the caller appends the corrections and
    erases the entries.
    """
    mine = Reservation.objects.filter(call__conversation=conversation)
    keys = mine.order_by("window_id").values_list("window_id", flat=True).distinct()
    windows = BudgetWindow.objects.select_for_update().filter(pk__in=list(keys)).order_by("pk")
    corrections = [_close_window(window, conversation) for window in list(windows)]
    mine._raw_delete("default")
    return corrections


def _close_window(window: BudgetWindow, conversation: Conversation) -> LedgerEntry:
    final = LedgerEntry.objects.filter(window=window, call__conversation=conversation)
    costs = dict(final.filter(kind__in=("settle", "release")).values_list("call_id", "amount"))
    total = held = over = 0
    rows = Reservation.objects.filter(window=window, call__conversation=conversation)
    for call_id, amount, is_open in rows.values_list("call_id", "amount", "is_open"):
        # A call in doubt: its hold stays spent.
        cost = amount if is_open else costs.get(call_id, 0)
        total += cost
        held += amount if is_open else 0
        over += max(0, cost - amount)
    # Corrections may have given back some of what these calls used beyond their holds.
    moved = min(over, window.overrun)
    window.spent += held + moved
    window.held -= held
    window.overrun -= moved
    window.limit = max(window.limit, window.spent + window.held)
    window.save(update_fields=["spent", "held", "overrun", "limit"])
    return LedgerEntry(
        window=window,
        kind=LedgerEntry.Kind.ADJUST,
        amount=total,
        overrun=over - moved,
        limit=window.limit,
        reason=f"calls of the erased conversation {conversation.public_id}",
    )
