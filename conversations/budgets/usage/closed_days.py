"""Days that are over, added up once, so that pages about weeks and months read days and not calls.

A day is closed by the sweep two days after its end, when each of its calls has a result and no turn
of it lives: then its rows change in few ways any more, and each of them marks the days of the rows
with `reopen_days`. A fork copies turns and transformations with their dates, so they count on their
days like any other; an erasure takes rows; and another model chosen for a conversation is that of
its transformations that no call answered. The next sweep adds these days up again; until then the
days from the first marked one on are read from the calls. `verify` compares every closed day with
its rows.

They are not written when a call settles, as counters would be: calls of one model would wait for
each other there, and every answer would pay for a page that few people open.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

from django.db.models import Count, Field, Min, Model, QuerySet, Sum

from conversations.budgets.usage.centres import Centre
from conversations.budgets.usage.days import ONE, Span, UtcDay
from conversations.budgets.usage.groups import Group
from conversations.budgets.usage.savings import (
    Changes,
    Step,
    filter_changes_within,
    sum_changes,
)
from conversations.budgets.usage.subjects import Subject, sum_users
from conversations.budgets.usage.sums import FLAGGED, SUMS, Figures, filter_calls_within
from conversations.db import transact
from conversations.log.chain import lock_site_chain
from conversations.models import (
    IS_LIVE,
    ApiCall,
    ClosedDay,
    PersonDay,
    Transformation,
    Turn,
)

#: A day is closed when it has been over for this long.
AFTER = timedelta(days=2)
#: Days that one sweep adds up at most.
MOST = 31
#: What days are summed from, each with its moment.
_MOMENTS: dict[type[Model], str] = {
    ApiCall: "sent_at", Turn: "created_at", Transformation: "created_at",
}  # fmt: skip
_FIGURES = ("calls", "input", "output", "cache_read", "cache_write", "micros")
_CHANGED = ("applied", "saved", "requested", "rejected")


@dataclass(frozen=True, slots=True)
class Sums:
    """What the calls, turns and transformations of some days come to."""

    groups: tuple[Group, ...] = ()
    steps: tuple[Step, ...] = ()
    turns: tuple[tuple[str, str, int], ...] = ()
    changes: tuple[tuple[str, Changes], ...] = ()
    flagged: int = 0
    centres: tuple[Centre, ...] = ()

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.groups + other.groups, self.steps + other.steps, self.turns + other.turns,
            self.changes + other.changes, self.flagged + other.flagged,
            self.centres + other.centres,
        )  # fmt: skip


def sum_rows(span: Span) -> Sums:
    """Add up the rows of a span, without what was erased."""
    steps, changes = sum_changes(span)
    return replace(_sum_calls(span), steps=steps, changes=changes, turns=_count_turns(span))


def _sum_calls(span: Span) -> Sums:
    """Add up the calls of a span: all that their sums need is read once."""
    groups: defaultdict[tuple[str, str, str], Figures] = defaultdict(Figures)
    centres: defaultdict[tuple[str, int], Figures] = defaultdict(Figures)
    flagged, rows = 0, filter_calls_within(span).annotate(day=UtcDay("sent_at")).order_by()
    sums = rows.values("day", "model", "purpose", "cost_centre")
    for row in sums.annotate(**SUMS, flagged=Count("pk", filter=FLAGGED)):
        day, figures, centre = str(row["day"]), Figures.of(row), row["cost_centre"]
        groups[day, row["model"], row["purpose"]] += figures
        if centre is not None:
            centres[day, centre] += figures
        flagged += row["flagged"]
    return Sums(
        groups=tuple(Group(*key, groups[key]) for key in sorted(groups)),
        centres=tuple(Centre(*key, centres[key]) for key in sorted(centres)),
        flagged=flagged,
    )


def _count_turns(span: Span) -> tuple[tuple[str, str, int], ...]:
    rows = Turn.objects.filter(created_at__gte=span.starts_at, created_at__lt=span.ends_at)
    days = rows.annotate(day=UtcDay("created_at")).values_list("day", "state")
    sums = days.annotate(count=Count("pk")).order_by("day", "state")
    return tuple((str(day), state, count) for day, state, count in sums)


def read_closed_days(span: Span) -> tuple[Sums, Span]:
    """Return the sums of the closed days at the beginning of a span, and the span after them."""
    current = ClosedDay.objects.filter(day__gte=span.first, day__lte=span.last, is_current=True)
    rows, found, at = list(current.order_by("day")), Sums(), span.first
    if rows and _is_empty(replace(span, last=rows[0].day - ONE)):
        at = rows[0].day
    for row in rows:
        if row.day != at:
            break
        found, at = found + _load(row), at + ONE
    return found, replace(span, first=at)


def _is_empty(span: Span) -> bool:
    """Return whether a span has no rows, as all days before the site's first have none."""
    turns = Turn.objects.filter(created_at__gte=span.starts_at, created_at__lt=span.ends_at)
    calls, changes = filter_calls_within(span), filter_changes_within(span)
    return not any(rows.exists() for rows in (turns, calls, changes))


def read_closed_people(span: Span, rest: Span) -> Iterator[Subject]:
    """Yield what the closed days of a span, those before `rest`, come to for each person."""
    rows = PersonDay.objects.filter(closed__day__gte=span.first, closed__day__lt=rest.first)
    names = (*_FIGURES, "compacting", *_CHANGED)
    # Their annotations are named apart from the fields that they sum. As plain fields they are
    # converted here, and not one by one with a function that Django calls for each of thousands.
    sums = {f"sum_{name}": Sum(name, output_field=Field()) for name in names}
    for owner, *sums_of in rows.order_by().values_list("owner").annotate(**sums):
        found = [*map(int, sums_of)]
        yield Subject("", Figures(*found[:6]), Changes(*found[7:]), found[6], owner)


def list_closed_costs(span: Span, rest: Span) -> list[tuple[str, int, int]]:
    """Return (day, person, micro-dollars) of the closed days of a span, those before `rest`."""
    rows = PersonDay.objects.filter(closed__day__gte=span.first, closed__day__lt=rest.first)
    found = rows.order_by("closed__day").values_list("closed__day", "owner", "micros")
    return [(day.isoformat(), owner, micros) for day, owner, micros in found]


def close_days(now: datetime | None = None) -> int:
    """Add up days that are over and not closed, the earliest first; return how many."""
    until = ((now or datetime.now(UTC)) - AFTER).astimezone(UTC).date()
    days = [day for day in _list_due(until) if not _is_alive(Span(day, day))][:MOST]
    for day in days:
        _close(day)
    return len(days)


def reopen_days(*changed: QuerySet[Any]) -> None:
    """Mark the days of calls, turns or transformations that come, go or count otherwise.

    Where there are any, the end of the site's chain is locked until the transaction is over.
    """
    days = {day for rows in changed for day in _list_days(rows)}
    if days:
        lock_site_chain()
        # Without its note a day that is being added up is not stored either.
        ClosedDay.objects.filter(day__in=days).update(is_current=False, sums={})


def _list_days(rows: QuerySet[Any]) -> list[str | date]:
    """Return the days of some rows, as the database writes days."""
    days = rows.order_by().annotate(day=UtcDay(_MOMENTS[rows.model]))
    return list(days.values_list("day", flat=True).distinct())


def add_up_day(day: date) -> tuple[dict[str, Any], list[PersonDay]]:
    """Return what a closed day has: its sums as JSON, and the rows of its people, by their key."""
    span = Span(day, day)
    sums = sum_rows(span)
    text = {
        "groups": [[one.model, one.purpose, *astuple(one.figures)] for one in sums.groups],
        "steps": [[one.kind, one.outcome, one.count, *astuple(one.changes)] for one in sums.steps],
        "turns": [[state, count] for _day, state, count in sums.turns],
        "changes": [[model, *astuple(found)] for model, found in sums.changes],
        "flagged": sums.flagged,
    }
    if sums.centres:  # so that a day from before there were any is as it was
        text["centres"] = [[one.key, *astuple(one.figures)] for one in sums.centres]
    people = sorted(sum_users(span, ()), key=lambda one: one.key or 0)
    return text, [_build_row(one) for one in people]


def _build_row(one: Subject) -> PersonDay:
    changed = dict(zip(_CHANGED, astuple(one.changes), strict=True))
    figures = dict(zip(_FIGURES, astuple(one.figures), strict=True))
    return PersonDay(owner_id=one.key or 0, compacting=one.compacting, **figures, **changed)


def _load(row: ClosedDay) -> Sums:
    day, sums = row.day.isoformat(), row.sums
    return Sums(
        tuple(Group(day, one[0], one[1], Figures(*one[2:])) for one in sums["groups"]),
        tuple(Step(day, one[0], one[1], one[2], Changes(*one[3:])) for one in sums["steps"]),
        tuple((day, state, count) for state, count in sums["turns"]),
        tuple((one[0], Changes(*one[1:])) for one in sums["changes"]),
        sums["flagged"],
        tuple(Centre(day, one[0], Figures(*one[1:])) for one in sums.get("centres", ())),
    )


def _list_due(until: date) -> Iterator[date]:
    """Yield the days before `until` that have no current sums, from the site's first day on."""
    starts = [
        kind._default_manager.aggregate(at=Min(moment))["at"] for kind, moment in _MOMENTS.items()
    ]
    first = min((at.astimezone(UTC).date() for at in starts if at), default=until)
    current = ClosedDay.objects.filter(is_current=True, day__gte=first, day__lt=until)
    days = {first + ONE * at for at in range((until - first).days)}
    if len(days) != current.count():
        yield from sorted(days - {*current.values_list("day", flat=True)})


def _is_alive(span: Span) -> bool:
    calls = filter_calls_within(span).filter(result=None)
    turns = Turn.objects.filter(created_at__gte=span.starts_at, created_at__lt=span.ends_at)
    return calls.exists() or turns.filter(IS_LIVE).exists()


def _close(day: date) -> None:
    note = _begin(day)
    _store(day, note, *add_up_day(day))


@transact
def _begin(day: date) -> dict[str, Any]:
    """Note that a day is being added up; the note is gone when its rows have changed meanwhile."""
    # Who changes them holds the same lock from `reopen_days` to the commit: it is over, or will
    # find the note.
    lock_site_chain()
    note = {"begun": str(uuid4())}
    ClosedDay.objects.update_or_create(day=day, defaults={"sums": note, "is_current": False})
    return note


@transact
def _store(day: date, note: dict[str, Any], sums: dict[str, Any], people: list[PersonDay]) -> None:
    lock_site_chain()
    closed = ClosedDay.objects.get(day=day)
    if closed.sums != note:
        return  # the next sweep tries again
    closed.sums, closed.is_current = sums, True
    closed.save()
    PersonDay.objects.filter(closed=closed).delete()
    for row in people:
        row.pk, row.closed = None, closed
    PersonDay.objects.bulk_create(people, batch_size=50)
