"""The books of a conversation that is erased: closed, so that each window keeps its sum.

Reservations and entries name calls, so they go with them. What they came to is entered once more as
a correction of the window, and what had settled above its reservation is spent like the rest.
"""

from __future__ import annotations

from django.db.models import F
from django.db.models.functions import Greatest

from conversations.models import BudgetWindow, Conversation, LedgerEntry, Reservation


def close_accounts(*, conversation: Conversation) -> list[LedgerEntry]:
    """Close what its calls hold; give a correction for each window, which replaces their entries.

    The corrections are still to be entered, and the entries to be erased.
    """
    mine = Reservation.objects.filter(call__conversation=conversation)
    keys = mine.order_by("window_id").values_list("window_id", flat=True).distinct()
    windows = BudgetWindow.objects.select_for_update().filter(pk__in=list(keys)).order_by("pk")
    corrections = [_close(window, conversation) for window in list(windows)]
    mine._raw_delete("default")
    return corrections


def _close(window: BudgetWindow, conversation: Conversation) -> LedgerEntry:
    final = LedgerEntry.objects.filter(window=window, call__conversation=conversation)
    costs = dict(final.filter(kind__in=("settle", "release")).values_list("call_id", "amount"))
    total = held = over = 0
    rows = Reservation.objects.filter(window=window, call__conversation=conversation)
    for call_id, amount, is_open in rows.values_list("call_id", "amount", "is_open"):
        # A call in doubt: what it held stays spent.
        cost = amount if is_open else costs.get(call_id, 0)
        total += cost
        held += amount if is_open else 0
        over += max(0, cost - amount)
    BudgetWindow.objects.filter(pk=window.pk).update(
        spent=F("spent") + held + over,
        held=F("held") - held,
        overrun=F("overrun") - over,
        limit=Greatest("limit", F("spent") + F("held") + over),
    )
    return LedgerEntry(
        window=window,
        kind=LedgerEntry.Kind.ADJUST,
        amount=total,
        reason=f"calls of the erased conversation {conversation.public_id}",
    )
