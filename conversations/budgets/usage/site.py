"""The whole site within a span: a fixed number of queries, each over an indexed span."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count
from django.utils import timezone

from conversations.budgets.usage.centres import Centre, add_erased_centres
from conversations.budgets.usage.closed_days import (
    read_closed_days,
    read_closed_people,
    sum_rows,
)
from conversations.budgets.usage.days import Span
from conversations.budgets.usage.erased import Erased, list_erased_within
from conversations.budgets.usage.groups import Group, add_erased
from conversations.budgets.usage.percentiles import (
    Spread,
    measure_estimate_errors,
    measure_tokens_saved,
)
from conversations.budgets.usage.savings import Changes, Step, add_changes
from conversations.budgets.usage.subjects import Subject, sum_models, sum_users
from conversations.budgets.usage.sums import Figures, add_figures
from conversations.models import IS_LIVE, Reservation, Turn

#: A reservation open for longer belongs to no live call.
STUCK = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Now:
    """Live turns that run and that wait, and reservations that were never settled."""

    running: int
    waiting: int
    stuck: int


@dataclass(frozen=True, slots=True)
class Site:
    span: Span
    #: The days at its end that are not closed.
    rest: Span
    turns: tuple[tuple[str, str, int], ...]
    steps: tuple[Step, ...]
    groups: tuple[Group, ...]
    centres: tuple[Centre, ...]
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
        return add_changes(step.changes for step in self.steps)

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
    closed, rest = read_closed_days(span)
    sums = closed + sum_rows(rest)
    groups = add_erased(sums.groups, erased)
    return Site(
        span=span,
        rest=rest,
        turns=sums.turns,
        steps=sums.steps,
        groups=groups,
        centres=add_erased_centres(sums.centres, erased),
        users=sum_users(rest, erased, read_closed_people(span, rest)),
        models=sum_models(groups, sums.changes),
        errors=measure_estimate_errors(span),
        saved=measure_tokens_saved(span),
        now=_count_now(),
        erased=tuple(erased),
        flagged=sums.flagged,
    )


def _count_now() -> Now:
    states = Turn.objects.filter(IS_LIVE).values_list("state").annotate(count=Count("pk"))
    counts = dict(states.order_by())
    waiting = counts.pop("queued", 0)
    # Few are open; asked for the old calls first, a database would read all of them.
    sent = Reservation.objects.filter(is_open=True).values_list("call__sent_at", flat=True)
    old = timezone.now() - STUCK
    return Now(sum(counts.values()), waiting, sum(at < old for at in sent))
