"""The tables of the overview page as rows of CSV files."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from conversations.budgets.usage.cells import Cell, format_dollars
from conversations.budgets.usage.centres import add_erased_centres, group_centres, sum_centres
from conversations.budgets.usage.days import Span
from conversations.budgets.usage.erased import list_erased_within
from conversations.budgets.usage.groups import Group, group_calls, name_purpose, sum_lines
from conversations.budgets.usage.savings import Step, sum_changes
from conversations.budgets.usage.shares import sum_by_group
from conversations.budgets.usage.subjects import Subject, sum_models, sum_users
from conversations.budgets.usage.sums import Figures, filter_calls_within

_FIGURES = (
    "calls", "input tokens", "output tokens", "cache read tokens", "cache write tokens",
    "cost in dollars",
)  # fmt: skip
_CHANGES = (
    "transformations", "saved tokens", "summaries asked for", "of these rejected or vetoed",
    "compaction cost in dollars",
)  # fmt: skip

Rows = Iterator[tuple[Cell, ...]]


def list_user_rows(span: Span) -> Rows:
    yield ("user", *_FIGURES, *_CHANGES)
    yield from map(_cells_of_subject, sum_users(span, list(list_erased_within(span))))


def list_group_rows(span: Span) -> Rows:
    """Yield one row for each group; a person in several groups counts in each."""
    yield ("group", *_FIGURES, *_CHANGES)
    yield from map(_cells_of_subject, sum_by_group(sum_users(span, list(list_erased_within(span)))))


def list_model_rows(span: Span) -> Rows:
    yield ("model", *_FIGURES, *_CHANGES)
    _steps, changes = sum_changes(span)
    yield from map(_cells_of_subject, sum_models(_group_calls(span), changes))


def list_purpose_rows(span: Span) -> Rows:
    yield ("purpose", *_FIGURES)
    for line in sum_lines(_group_calls(span), name_purpose):
        yield (line.name, *_cells_of_figures(line.figures))


def list_centre_rows(span: Span) -> Rows:
    yield ("cost centre", *_FIGURES)
    centres = group_centres(filter_calls_within(span))
    centres = add_erased_centres(centres, list_erased_within(span))
    for line in sum_centres(centres, _group_calls(span)):
        yield (line.name, *_cells_of_figures(line.figures))


def list_day_rows(span: Span) -> Rows:
    """Yield one row for each day, model and purpose."""
    yield ("day", "model", "purpose", *_FIGURES)
    for group in _group_calls(span):
        yield (group.day, group.model, name_purpose(group), *_cells_of_figures(group.figures))


def list_step_rows(span: Span) -> Rows:
    yield ("day", "kind", "outcome", "transformations", "saved tokens")
    steps, _changes = sum_changes(span)
    for step in steps:
        yield _cells_of_step(step)


#: The sheets that can be downloaded, by the name in the URL.
SHEETS: dict[str, Callable[[Span], Rows]] = {
    "users": list_user_rows,
    "groups": list_group_rows,
    "models": list_model_rows,
    "purposes": list_purpose_rows,
    "cost-centres": list_centre_rows,
    "days": list_day_rows,
    "transformations": list_step_rows,
}


def _group_calls(span: Span) -> tuple[Group, ...]:
    return group_calls(filter_calls_within(span), list_erased_within(span))


def _cells_of_subject(subject: Subject) -> tuple[Cell, ...]:
    changes = subject.changes
    return (
        subject.name, *_cells_of_figures(subject.figures), changes.applied, changes.saved,
        changes.requested, changes.rejected, format_dollars(subject.compacting),
    )  # fmt: skip


def _cells_of_figures(figures: Figures) -> tuple[Cell, ...]:
    return (
        figures.calls, figures.input, figures.output, figures.cache_read, figures.cache_write,
        format_dollars(figures.micros),
    )  # fmt: skip


def _cells_of_step(step: Step) -> tuple[Cell, ...]:
    return (step.day, step.kind, step.outcome, step.count, step.changes.saved)
