"""A cheap look for drift: whether what windows hold is what open reservations say.

One statement over what is held now, by two partial indexes, however much is settled; `manage.py
ledger` recomputes everything.
"""

from __future__ import annotations

from django.db.models import F, OuterRef, Q, Subquery, Sum
from django.db.models.functions import Coalesce

from conversations.models import BudgetWindow, Reservation


def has_drift() -> bool:
    """Say whether a window holds another amount than its open reservations."""
    held_now = Reservation.objects.filter(is_open=True)
    mine = held_now.filter(window=OuterRef("pk")).order_by().values("window")
    sums = mine.annotate(sum=Sum("amount")).values("sum")
    rows = BudgetWindow.objects.filter(Q(held__gt=0) | Q(pk__in=held_now.values("window")))
    return rows.annotate(due=Coalesce(Subquery(sums), 0)).exclude(held=F("due")).exists()
