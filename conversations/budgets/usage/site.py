"""The whole site within a span: a fixed number of queries, each over an indexed span."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count
from django.utils import timezone

from conversations.budgets.usage.days import Span, UtcDay
from conversations.budgets.usage.erased import Erased, list_erased_within
from conversations.budgets.usage.groups import Group, group_calls
from conversations.budgets.usage.percentiles import (
    Spread,
    measure_estimate_errors,
    measure_tokens_saved,
)
from conversations.budgets.usage.savings import CHANGES, Changes, filter_changes_within
from conversations.budgets.usage.subjects import Subject, sum_models, sum_users
from conversations.budgets.usage.sums import FLAGGED, Figures, add_figures, filter_calls_within
from conversations.models import LIVE, Reservation, Turn

#: A reservation open for longer belongs to no live call.
STUCK = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Step:
    """The transformations of one kind with one outcome, on one day."""

    day: str
    kind: str
    outcome: str
    count: int
    changes: Changes


@dataclass(frozen=True, slots=True)
class Now:
    """Live turns that run and that wait, and reservations that were never settled."""

    running: int
    waiting: int
    stuck: int


@dataclass(frozen=True, slots=True)
class Site:
    span: Span
    turns: tuple[tuple[str, str, int], ...]
    steps: tuple[Step, ...]
    groups: tuple[Group, ...]
    users: list[Subject]
    models: list[Subject]
    errors: Spread
    saved: Spread
    now: Now
    erased: tuple[Erased, ...]
    #: Number of calls with impossible or missing figures.
    flagged: int

    @property
    def total(self) -> Figures:
        return add_figures(group.figures for group in self.groups)

    @property
    def changes(self) -> Changes:
        return sum((step.changes for step in self.steps), Changes())

    @property
    def states(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for _day, state, count in self.turns:
            found[state] += count
        return found

    def cost_of(self, *purposes: str) -> int:
        return sum(row.figures.micros for row in self.groups if row.purpose in purposes)


def sum_site(span: Span) -> Site:
    """Add up everything that the overview page shows of a span."""
    erased = list(list_erased_within(span))
    rows = group_calls(filter_calls_within(span), erased)
    return Site(
        span=span,
        turns=_count_turns(span),
        steps=sum_steps(span),
        groups=rows,
        users=sum_users(span, erased),
        models=sum_models(span, rows),
        errors=measure_estimate_errors(span),
        saved=measure_tokens_saved(span),
        now=_count_now(),
        erased=tuple(erased),
        flagged=filter_calls_within(span).filter(FLAGGED).count(),
    )


def _count_turns(span: Span) -> tuple[tuple[str, str, int], ...]:
    rows = Turn.objects.filter(created_at__gte=span.starts_at, created_at__lt=span.ends_at)
    days = rows.annotate(day=UtcDay("created_at")).values_list("day", "state")
    sums = days.annotate(count=Count("pk")).order_by("day", "state")
    return tuple((str(day), state, count) for day, state, count in sums)


def sum_steps(span: Span) -> tuple[Step, ...]:
    rows = filter_changes_within(span).annotate(day=UtcDay("created_at"))
    sums = rows.values("day", "kind", "outcome").annotate(count=Count("pk"), **CHANGES)
    return tuple(
        Step(str(row["day"]), row["kind"], row["outcome"], row["count"], Changes.of(row))
        for row in sums.order_by("day", "kind", "outcome")
    )


def _count_now() -> Now:
    states = Turn.objects.filter(state__in=LIVE).values_list("state").annotate(count=Count("pk"))
    counts = dict(states.order_by())
    waiting = counts.pop("queued", 0)
    old = Reservation.objects.filter(is_open=True, call__sent_at__lt=timezone.now() - STUCK)
    return Now(sum(counts.values()), waiting, old.count())
