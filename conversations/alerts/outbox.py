"""The outbox: a row for each crossing and receiver, repeated until it is taken or a day is over.

Rows are made from the crossings that have none, so a sweep that was interrupted, or runs twice at
once, makes each row once: the database keeps them unique. An attempt is claimed by counting it and
setting when the next one is due, in one conditional update. What a dead process claimed is
therefore tried again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from conversations.models import AlertDelivery, Budget, BudgetAlert, Crossing

State = AlertDelivery.State
#: After each attempt; together a little less than a day. The last one waits for its own result.
PAUSES = tuple(timedelta(minutes=n) for n in (1, 5, 15, 60, 180, 420, 720, 10))
#: Crossings that are older are not told of any more.
OLDEST = timedelta(days=1)
#: Attempts of one sweep.
MOST_CLAIMED = 20
#: Deliveries are shown and kept for so long.
KEPT_FOR = timedelta(days=90)
NOT_KNOWN = "The last attempt ended without a result."


def queue_crossings() -> int:
    """Make the rows of crossings that active alerts are to tell of; return how many."""
    alerts = BudgetAlert.objects.filter(is_active=True).prefetch_related("people").order_by("pk")
    return sum(len(_queue_rows(_list_missing(alert))) for alert in alerts)


def queue_test(*, alert: BudgetAlert) -> int:
    """Queue a test for every receiver of an alert; return how many."""
    return len(_queue_rows(_list_receivers(alert, None)))


def claim_deliveries() -> list[int]:
    """Claim what is due, each by one process; return the ids."""
    now = timezone.now()
    due = AlertDelivery.objects.filter(state=State.WAITING, next_try_at__lte=now)
    claimed = []
    for key, attempts in due.order_by("next_try_at").values_list("pk", "attempts")[:MOST_CLAIMED]:
        mine = due.filter(pk=key, attempts=attempts)
        if attempts >= len(PAUSES):
            mine.update(state=State.GIVEN_UP, last_error=NOT_KNOWN)
        elif mine.update(attempts=attempts + 1, next_try_at=now + PAUSES[attempts]):
            claimed.append(key)
    return claimed


def record_sent(*, delivery_id: int) -> None:
    """Record that the receiver took it."""
    AlertDelivery.objects.filter(pk=delivery_id).update(
        state=State.SENT, sent_at=timezone.now(), last_error=""
    )


def record_failure(*, delivery_id: int, error: str, is_final: bool) -> None:
    """Record why an attempt failed; the last one is where it is given up."""
    row = AlertDelivery.objects.filter(pk=delivery_id, state=State.WAITING)
    row.update(last_error=error[:200])
    if not is_final:
        row = row.filter(attempts__gte=len(PAUSES))
    row.update(state=State.GIVEN_UP)


def send_again(rows: QuerySet[AlertDelivery]) -> int:
    """Have what was not sent tried again from the beginning; return how many."""
    waiting = rows.exclude(state=State.SENT)
    return waiting.update(
        state=State.WAITING, attempts=0, next_try_at=timezone.now(), last_error=""
    )


def forget_deliveries() -> int:
    """Delete deliveries that are no longer shown; return how many."""
    old = AlertDelivery.objects.filter(created_at__lt=timezone.now() - KEPT_FOR)
    return old.exclude(state=State.WAITING).delete()[0]


def _list_missing(alert: BudgetAlert) -> Iterator[AlertDelivery]:
    for crossing in _list_crossings(alert, timezone.now()):
        yield from _list_receivers(alert, crossing)


def _list_crossings(alert: BudgetAlert, now: datetime) -> QuerySet[Crossing]:
    since = max(alert.active_since, now - OLDEST)
    rows = Crossing.objects.filter(created_at__gte=since, percent__gte=alert.from_percent)
    # What one settlement passed at once is told of once, by its highest percent.
    higher = Crossing.objects.filter(
        window=OuterRef("window"), spent=OuterRef("spent"), percent__gt=OuterRef("percent")
    )
    # A limit that people set themselves is their own affair.
    rows = rows.exclude(Exists(higher)).exclude(window__budget__kind=Budget.Kind.OWN)
    if alert.budget_id is not None:
        rows = rows.filter(window__budget=alert.budget_id)
    if alert.group_id is not None:
        rows = rows.filter(window__budget__group=alert.group_id)
    return rows.order_by("pk")


def _list_receivers(alert: BudgetAlert, crossing: Crossing | None) -> Iterator[AlertDelivery]:
    for person in alert.people.all():
        if person.is_active:
            yield AlertDelivery(alert=alert, crossing=crossing, person=person)
    if alert.url:
        yield AlertDelivery(alert=alert, crossing=crossing)


def _queue_rows(rows: Iterable[AlertDelivery]) -> list[AlertDelivery]:
    """Store the rows that are new; a person is told of a crossing once, whatever names them."""
    found = list(rows)
    of = {row.crossing_id for row in found}
    stored = AlertDelivery.objects.filter(crossing__in=of)
    known = {_key(*row) for row in stored.values_list("crossing", "person", "alert")}
    new = [row for row in found if row.crossing_id is None or _key_of(row) not in known]
    return AlertDelivery.objects.bulk_create(new, ignore_conflicts=True)


def _key_of(row: AlertDelivery) -> tuple[int | None, bool, int | None]:
    return _key(row.crossing_id, row.person_id, row.alert_id)


def _key(
    crossing: int | None, person: int | None, alert: int | None
) -> tuple[int | None, bool, int | None]:
    return (crossing, False, alert) if person is None else (crossing, True, person)
