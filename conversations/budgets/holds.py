"""Holds: what a call may use at most is held before it, and settled with what it used.

Both happen in the transaction of the call or its result, with every changed window locked after the
call's conversation, which callers pass in locked. A window accepts a hold only if spent, held and
overrun stay within the present limit. So spent plus held never exceeds the limit, whatever runs in
parallel; a database constraint enforces that too. What settles above its hold goes to `overrun`: it
is never lost and never blocks a settlement.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection
from django.db.models import Exists, F, OuterRef, Q

from conversations.budgets.affordability import (
    check_call,
    find_amount,
    find_later_amount,
    is_of_calls,
)
from conversations.budgets.crossings import record_crossings
from conversations.budgets.refusals import build_rate_refusal
from conversations.budgets.units import UNITS, CallSize, CallUse
from conversations.budgets.windows import Slot, update_windows
from conversations.log.chain import append_rows
from conversations.log.contents import read_contents
from conversations.models import (
    ApiCall,
    BudgetWindow,
    Conversation,
    LedgerEntry,
    Reservation,
)

Kind = LedgerEntry.Kind
#: The person whose budgets a call counts in.
_PAYER = F("call__conversation__owner")


def find_room(
    slots: Iterable[Slot], unit: str, size: CallSize, ahead: CallSize | None = None
) -> int | None:
    """Return what a call may still hold in all windows of a unit; None if there is no limit.

    What the reply `ahead` needs is left for it. Of a limit a minute it is the whole of it.
    """
    found = (
        slot.status.room - find_later_amount(ahead, slot.budget.rule)
        for slot in slots
        if slot.budget.rule.unit == unit and is_of_calls(slot.budget.rule, size)
    )
    return min(found, default=None)


def hold_amounts(
    *, slots: tuple[Slot, ...], call: ApiCall, size: CallSize, conversation: Conversation
) -> None:
    """Hold the most a call of this size can use in every window; raises Refused.

    A limit a minute that the call fits in by itself, but not now, raises RateLimitReached.
    """
    if not slots:
        return
    counted = _find_counting_budgets(slots, call)
    check_call(size, (slot.status for slot in slots), counted=counted).demand()
    rows = []
    for slot in slots:
        amount = find_amount(size, slot.budget.rule, counted)
        if amount > slot.status.left:
            raise build_rate_refusal(slot.status, call.sent_at)
        slot.window.held += amount
        slot.window.limit = slot.status.limit
        rows.append(Reservation(call=call, window=slot.window, amount=amount))
    update_windows([row.window for row in rows], "held", "limit")
    Reservation.objects.bulk_create(rows)
    _append_entries(call, conversation, Kind.RESERVE, [(row.window, row.amount) for row in rows])


def _find_counting_budgets(slots: Iterable[Slot], call: ApiCall) -> frozenset[int]:
    """Return the ids of the budgets that count the call's turn already."""
    turns = [slot for slot in slots if UNITS[slot.budget.rule.unit].is_once_per_turn]
    keys = _find_counted_turns(call) if turns else set()
    return frozenset(slot.budget.rule.id for slot in turns if _turn_key(slot.window) in keys)


def _find_counted_turns(call: ApiCall) -> set[tuple[object, ...]]:
    """Return the keys under which the call's turn is counted already."""
    settled = LedgerEntry.objects.filter(
        call=OuterRef("call"), window=OuterRef("window"), kind=Kind.SETTLE, amount__gt=0
    )
    units = [unit.name for unit in UNITS.values() if unit.is_once_per_turn]
    rows = Reservation.objects.filter(
        Q(is_open=True) | Exists(settled), call__turn=call.turn_id, window__budget__unit__in=units
    )
    return {_turn_key(row.window) for row in rows.select_related("window__budget")}


def _turn_key(window: BudgetWindow) -> tuple[object, ...]:
    """Identify a turn's budget across windows and allowances: a turn counts once in each."""
    if window.user_id is None:
        return (window.budget_id,)
    budget = window.budget
    return window.user_id, budget.kind, budget.unit, budget.period, budget.model


def settle_holds(*, call: ApiCall, used: CallUse | None, conversation: Conversation) -> None:
    """Replace a call's hold by what it used (None: a request at most); repeating it is idle."""
    windows = _lock_windows(call, conversation)
    if not windows:
        return
    # Read after the lock, so that a settlement by another process is seen.
    mine_open = Reservation.objects.filter(call=call, is_open=True)
    rows = list(mine_open.select_related("window__budget").annotate(payer=_PAYER))
    if not rows:
        return
    closed: dict[Kind, list[tuple[BudgetWindow, int]]] = {Kind.RELEASE: [], Kind.SETTLE: []}
    for row in rows:
        window, amount = windows[row.window_id], _find_used_amount(used, row)
        within = min(amount, row.amount)
        window.held -= row.amount
        window.spent += within
        window.overrun += amount - within
        kind = Kind.SETTLE if used is not None or amount else Kind.RELEASE
        closed[kind].append((window, amount))
    update_windows(windows.values(), "held", "spent", "overrun")
    mine_open.update(is_open=False)
    for kind, changed in closed.items():
        _append_entries(call, conversation, kind, changed)
    record_crossings(user_id=rows[0].payer, windows=set(windows))


def _find_used_amount(use: CallUse | None, row: Reservation) -> int:
    """Return what counts of a call in the window of its hold."""
    unit = UNITS[row.window.budget.unit]
    if use is None:
        return row.amount if unit.counts_failed else 0
    amount = unit.used(use)
    # A call without a hold did not count the turn: another call of the turn has.
    return min(row.amount, amount) if unit.is_once_per_turn else amount


def _lock_windows(call: ApiCall, conversation: Conversation) -> dict[int, BudgetWindow]:
    """Return the windows in which a call holds or has held, locked, by their keys."""
    if not (read_contents(conversation).holds and _has_reservations(call)):
        return {}
    mine = BudgetWindow.objects.filter(reservations__call=call)
    return {row.pk: row for row in mine.select_for_update(of=("self",)).order_by("pk")}


def _has_reservations(call: ApiCall) -> bool:
    """Return whether a call holds or has held anything; raw SQL, because most do not."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM conversations_reservation WHERE call_id = %s LIMIT 1", [call.pk]
        )
        return cursor.fetchone() is not None


def _append_entries(
    call: ApiCall,
    conversation: Conversation,
    kind: Kind,
    rows: Iterable[tuple[BudgetWindow, int]],
) -> None:
    entries = [
        LedgerEntry(
            window=window,
            call=call,
            kind=kind,
            amount=amount,
            limit=window.limit if kind == Kind.RESERVE else None,
        )
        for window, amount in rows
    ]
    append_rows(entries, conversation)
