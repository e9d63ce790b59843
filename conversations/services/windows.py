"""Windows of budgets: made on first use, locked in the order of their ids.

They are the last rows that a transaction locks (turn, conversation, windows), and one that has to
be made is made before any is locked, so no two transactions wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from conversations.allowances import Standing
from conversations.models import BudgetWindow
from conversations.queries.allowances import Place, places, standing, windows_of


@dataclass(frozen=True, slots=True)
class Slot:
    """A budget with its locked window; the standing counts what was used elsewhere, too."""

    place: Place
    window: BudgetWindow
    standing: Standing


def open_slots(user_id: int, now: datetime | None = None) -> tuple[Slot, ...]:
    """Give the budgets that count for a call of this person now, their windows locked."""
    found = places(user_id, now or timezone.now())
    if not found:
        return ()
    wanted = windows_of(found)
    _make_missing(found, list(wanted))
    windows = list(wanted.select_for_update(of=("self",)))
    return tuple(
        Slot(place, window, standing(place, windows))
        for place in found
        for window in windows
        if place.is_of(window)
    )


def _make_missing(found: Sequence[Place], windows: list[BudgetWindow]) -> None:
    missing = [
        BudgetWindow(
            budget_id=place.rule.id,
            user_id=place.user_id,
            starts_at=place.starts_at,
            ends_at=place.ends_at,
        )
        for place in found
        if not any(place.is_of(window) for window in windows)
    ]
    if missing:
        BudgetWindow.objects.bulk_create(missing, ignore_conflicts=True)
