"""The overview's tables as rows of files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from conversations.budgets.usage.cells import Cell, money
from conversations.budgets.usage.days import Span
from conversations.budgets.usage.erased import erased_within
from conversations.budgets.usage.groups import Group, grouped, lines, purpose_name
from conversations.budgets.usage.shares import by_group
from conversations.budgets.usage.site import Step, steps
from conversations.budgets.usage.subjects import Subject, models, users
from conversations.budgets.usage.sums import Figures, calls_within

#: Rows of one file; there are fewer users, models and days than that.
MOST_ROWS = 100_000
_FIGURES = (
    "calls", "input tokens", "output tokens", "cache read tokens", "cache write tokens",
    "cost in dollars",
)  # fmt: skip
_CHANGES = (
    "transformations", "saved tokens", "summaries asked for", "of these rejected or vetoed",
    "compaction cost in dollars",
)  # fmt: skip

Rows = Iterator[tuple[Cell, ...]]


def by_user(span: Span) -> Rows:
    yield ("user", *_FIGURES, *_CHANGES)
    yield from map(_subject, users(span, list(erased_within(span))))


def by_team(span: Span) -> Rows:
    """Give one row for each group; who is in several counts in each."""
    yield ("group", *_FIGURES, *_CHANGES)
    yield from map(_subject, by_group(users(span, list(erased_within(span)))))


def by_model(span: Span) -> Rows:
    yield ("model", *_FIGURES, *_CHANGES)
    yield from map(_subject, models(span, _groups(span)))


def by_purpose(span: Span) -> Rows:
    yield ("purpose", *_FIGURES)
    for line in lines(_groups(span), purpose_name):
        yield (line.name, *_figures(line.figures))


def by_day(span: Span) -> Rows:
    """Give one row for each day, model and purpose."""
    yield ("day", "model", "purpose", *_FIGURES)
    for group in _groups(span):
        yield (group.day, group.model, purpose_name(group), *_figures(group.figures))


def by_step(span: Span) -> Rows:
    yield ("day", "kind", "outcome", "transformations", "saved tokens")
    for step in steps(span):
        yield _step(step)


#: What can be downloaded, by the name in its address.
SHEETS: dict[str, Callable[[Span], Rows]] = {
    "users": by_user,
    "groups": by_team,
    "models": by_model,
    "purposes": by_purpose,
    "days": by_day,
    "transformations": by_step,
}


def bounded(rows: Iterable[tuple[Cell, ...]]) -> Rows:
    for at, row in enumerate(rows):
        if at > MOST_ROWS:
            yield (f"Cut after {MOST_ROWS:,} rows.",)
            return
        yield row


def _groups(span: Span) -> tuple[Group, ...]:
    return grouped(calls_within(span), erased_within(span))


def _subject(subject: Subject) -> tuple[Cell, ...]:
    changes = subject.changes
    return (
        subject.name, *_figures(subject.figures), changes.applied, changes.saved, changes.asked,
        changes.refused, money(subject.compacting),
    )  # fmt: skip


def _figures(figures: Figures) -> tuple[Cell, ...]:
    return (
        figures.calls, figures.input, figures.output, figures.cache_read, figures.cache_write,
        money(figures.micros),
    )  # fmt: skip


def _step(step: Step) -> tuple[Cell, ...]:
    return (step.day, step.kind, step.outcome, step.count, step.changes.saved)
