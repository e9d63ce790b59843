"""The addresses of the API: what each reads, takes and answers, in one table.

Addresses (urls.py) and documentation (openapi.py) are both made from it, so that neither has what
the other has not. Amounts are integers: millionths of a dollar, tokens, turns or requests, by their
unit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from conversations.accounts.people import find_person
from conversations.budgets.ledger_rows import KINDS, PURPOSES, filter_entries
from conversations.budgets.spending import (
    SCOPES,
    SpendingRow,
    filter_spending,
    forecast_spending,
    read_spending_row,
)
from conversations.budgets.status import list_statuses
from conversations.budgets.usage.days import MOST_DAYS, Span, make_named_span
from conversations.budgets.usage.dimensions import DIMENSIONS, sum_by
from conversations.reductions.reduction_rows import OUTCOMES, filter_reductions
from conversations.web.api.documented import FROM, TO, Asked, Field, Parameter
from conversations.web.api.problems import ApiRefused
from conversations.web.api.rows import AllRows, KeyRows, Record, Rows

_PERSON = Parameter("person", "The user name of one person.")
_UNIT = Field("unit", "string", "What is counted: money, tokens, turns or requests.")
_AMOUNT = "in millionths of a dollar, tokens, turns or requests, by `unit`"
_FORECAST = "What will be spent at the end of the window at the pace since its beginning."
_WINDOW = (
    Field("budget", "integer", "The number of the budget."),
    Field("scope", "string", "For whom it is set: site, group or user."),
    Field("kind", "string", "pool: shared by all; per_member: for each; own: set by the person."),
    Field("group", "string", "The group that it is set for.", may_be_null=True),
    _UNIT,
    Field("model", "string", 'The model or family whose calls alone count; "": all.'),
    Field("period", "string", "minute, hour, day, week, month or lifetime."),
    Field("time_zone", "string", "Where its days begin at midnight."),
    Field("starts_at", "moment", "When its present window began."),
    Field("ends_at", "moment", "When it ends; null: never.", may_be_null=True),
    Field("limit", "integer", f"The limit with all grants, {_AMOUNT}."),
    Field("spent", "integer", f"What is spent, {_AMOUNT}."),
    Field("held", "integer", f"What running calls hold, {_AMOUNT}."),
    Field("forecast", "integer", f"{_FORECAST} null: no basis yet.", may_be_null=True),
)
_FIGURES = (
    Field("calls", "integer", "Requests to the model."),
    Field("input_tokens", "integer", "Tokens of requests, without those of the cache."),
    Field("output_tokens", "integer", "Tokens of answers."),
    Field("cache_read_tokens", "integer", "Tokens read from the cache."),
    Field("cache_write_tokens", "integer", "Tokens written to the cache."),
    Field("cost_micros", "integer", "The cost in millionths of a dollar."),
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address: `read` makes the rows of a request whose parameters are checked."""

    name: str
    scope: str
    title: str
    parameters: tuple[Parameter, ...]
    fields: tuple[Field, ...]
    read: Callable[[Asked], Rows]
    is_paged: bool = True


def _read_spending(asked: Asked) -> Rows:
    now = timezone.now()

    def describe(window: Any) -> Record:
        return _describe_spending(read_spending_row(window, now))

    texts = {name: asked.read(name) for name in ("scope", "name", "group", "model")}
    centre, day = asked.read("cost_centre"), asked.read_day("day")
    return KeyRows(filter_spending(**texts, centre=centre, day=day, now=now), describe)


def _describe_spending(row: SpendingRow) -> Record:
    budget = row.budget
    return {
        "person": row.user.username if row.user else None,
        "budget": budget.pk,
        "scope": budget.scope,
        "kind": budget.kind,
        "group": budget.group.name if budget.group else None,
        "unit": budget.unit,
        "model": budget.model,
        "period": budget.period,
        "time_zone": budget.time_zone,
        "starts_at": row.starts_at.isoformat(),
        "ends_at": row.ends_at.isoformat() if row.ends_at else None,
        "limit": row.limit,
        "spent": row.spent,
        "held": row.held,
        "forecast": row.forecast,
    }


def _read_budgets(asked: Asked) -> Rows:
    person = find_person(asked.read("person"))
    if person is None:
        raise ApiRefused(404, "There is no person of this name.")
    now = timezone.now()
    return AllRows([
        {
            "source": status.rule.source,
            "budget": status.rule.id,
            "scope": status.rule.scope,
            "kind": status.rule.kind,
            "group": status.rule.group or None,
            "unit": status.rule.unit,
            "model": status.rule.model,
            "period": status.rule.period,
            "time_zone": status.rule.zone,
            "starts_at": status.starts_at.isoformat(),
            "ends_at": status.ends_at.isoformat() if status.ends_at else None,
            "limit": status.limit,
            "spent": status.spent,
            "held": status.held,
            "forecast": forecast_spending(status.spent, status.starts_at, status.ends_at, now),
        }
        for status in list_statuses(person.pk, now)
    ])  # fmt: skip


def _read_usage(asked: Asked) -> Rows:
    today = timezone.now().date()
    first, last = asked.read_day("from"), asked.read_day("to") or today
    span = Span(first or make_named_span("month", last).first, last)
    if span.first > span.last:
        raise ApiRefused(400, "The first day comes after the last.")
    if (span.last - span.first).days >= MOST_DAYS:
        raise ApiRefused(400, f"At most {MOST_DAYS} days fit one answer.")
    by = asked.read_list("by") or DIMENSIONS[:3]
    return AllRows([
        {
            **{name: values.get(name) for name in DIMENSIONS},
            "calls": figures.calls,
            "input_tokens": figures.input,
            "output_tokens": figures.output,
            "cache_read_tokens": figures.cache_read,
            "cache_write_tokens": figures.cache_write,
            "cost_micros": figures.micros,
        }
        for values, figures in sum_by(span, by)
    ])  # fmt: skip


def _read_ledger(asked: Asked) -> Rows:
    since, until = asked.read_bounds()
    rows = filter_entries(
        since=since,
        until=until,
        kind=asked.read("kind"),
        call__purpose=asked.read("purpose"),
        call__model=asked.read("model"),
        call__cost_centre__code=asked.read("cost_centre"),
        window__user__username=asked.read("person"),
        window__budget__group__name=asked.read("group"),
    )
    return KeyRows(rows, _describe_entry, moment="created_at")


def _describe_entry(row: Any) -> Record:
    window, call = row.window, row.call
    return {
        "entry": row.pk,
        "at": row.created_at.isoformat(),
        "kind": row.kind,
        "amount": row.amount,
        "unit": window.budget.unit,
        "budget": window.budget_id,
        "period": window.budget.period,
        "window": window.pk,
        "window_starts_at": window.starts_at.isoformat(),
        "person": window.user.username if window.user else None,
        "group": window.budget.group.name if window.budget.group else None,
        "call": row.call_id,
        "purpose": call.purpose if call else None,
        "model": call.model if call else None,
        "cost_centre": call.cost_centre.code if call and call.cost_centre else None,
        "reason": row.reason,
        "by": row.actor.username if row.actor else None,
    }


def _read_reductions(asked: Asked) -> Rows:
    since, until = asked.read_bounds()
    rows = filter_reductions(
        since=since,
        until=until,
        outcome=asked.read("outcome"),
        conversation__owner__username=asked.read("person"),
    )
    return KeyRows(rows, _describe_reduction, moment="created_at")


def _describe_reduction(row: Any) -> Record:
    result = getattr(row.summary_call, "result", None)
    return {
        "at": row.created_at.isoformat(),
        "conversation": str(row.conversation.public_id),
        "entry": row.seq,
        "person": row.conversation.owner.username,
        "kind": row.kind,
        "outcome": row.outcome,
        "setting": row.setting,
        "measured": row.number,
        "threshold": row.threshold,
        "source": row.source,
        "tokens_before": row.tokens_before,
        "tokens_after": row.tokens_after,
        "bytes_before": row.bytes_before,
        "bytes_after": row.bytes_after,
        "by": row.actor.username if row.actor else None,
        "summary_model": row.summary_call.model if row.summary_call else None,
        "summary_cost_micros": result.cost_micros if result else None,
    }


ENDPOINTS = (
    Endpoint(
        "spending",
        "spending",
        "Every budget in its present window, as the Spending page shows it.",
        (
            Parameter("scope", "Only budgets of people, groups or the site.", SCOPES[1:]),
            Parameter("name", "Part of the name of a person or a group."),
            Parameter("group", "The people and budgets of a group, by its name or a part of it."),
            Parameter("model", "Budgets that count one model or family, by a part of its name."),
            Parameter("cost_centre", "People of a cost centre, by its code or a part of its name."),
            Parameter("day", "Windows at its end, in each budget's time zone.", is_day=True),
        ),
        (
            Field("person", "string", "Whose window it is; null: shared.", may_be_null=True),
            *_WINDOW,
        ),
        _read_spending,
    ),
    Endpoint(
        "budgets",
        "spending",
        "The budgets that apply to a person now; none: nothing is limited.",
        (Parameter("person", "The user name of the person.", is_needed=True),),
        (Field("source", "string", "Where the budget comes from, in words."), *_WINDOW),
        _read_budgets,
        is_paged=False,
    ),
    Endpoint(
        "usage",
        "usage",
        "What calls came to, this month (UTC) or between two days, by what you ask for.",
        (
            FROM, TO,
            Parameter(
                "by", "What to group by; a person in several groups counts in each.",
                DIMENSIONS, is_list=True,
            ),
        ),
        (
            Field("day", "string", "The day (UTC); null: not asked for.", may_be_null=True),
            Field("model", "string", "The model; null: not asked for.", may_be_null=True),
            Field(
                "purpose", "string",
                'reply, summary, title, "" of erased conversations; null: not asked for.',
                may_be_null=True,
            ),
            Field("person", "string", "The user name; null: not asked for.", may_be_null=True),
            Field(
                "group", "string", 'A group of the person, "": in none; null: not asked for.',
                may_be_null=True,
            ),
            Field(
                "cost_centre", "string", 'The code, "": none; null: not asked for.',
                may_be_null=True,
            ),
            *_FIGURES,
        ),
        _read_usage,
        is_paged=False,
    ),
    Endpoint(
        "ledger",
        "ledger",
        "Every movement in every window, in the order in which they were made.",
        (
            FROM, TO, _PERSON,
            Parameter("group", "The name of one group, whose budgets the windows are of."),
            Parameter("kind", "One kind of movement.", KINDS),
            Parameter("purpose", "Calls of one purpose.", PURPOSES),
            Parameter("model", "Calls of one model."),
            Parameter("cost_centre", "Calls of the cost centre with this code."),
        ),
        (
            Field("entry", "integer", "The number of the entry."),
            Field("at", "moment", "When it was made."),
            Field("kind", "string", "reserve, settle, release or adjust."),
            Field("amount", "integer", f"How much, {_AMOUNT}."),
            _UNIT,
            Field("budget", "integer", "The number of the budget."),
            Field("period", "string", "The period of the budget."),
            Field("window", "integer", "The number of the window."),
            Field("window_starts_at", "moment", "When the window began."),
            Field("person", "string", "Whose window it is; null: shared.", may_be_null=True),
            Field("group", "string", "The group of the budget.", may_be_null=True),
            Field("call", "integer", "The number of the call.", may_be_null=True),
            Field("purpose", "string", "The purpose of the call.", may_be_null=True),
            Field("model", "string", "The model of the call.", may_be_null=True),
            Field("cost_centre", "string", "The code of its cost centre.", may_be_null=True),
            Field("reason", "string", 'Why, of a correction; else "".'),
            Field("by", "string", "Who corrected.", may_be_null=True),
        ),
        _read_ledger,
    ),
    Endpoint(
        "reductions",
        "reductions",
        "Every transformation of a context, as figures, in the order in which they were made.",
        (FROM, TO, _PERSON, Parameter("outcome", "One outcome.", OUTCOMES)),
        (
            Field("at", "moment", "When it was made."),
            Field("conversation", "uuid", "The conversation."),
            Field("entry", "integer", "The number of its entry in the conversation."),
            Field("person", "string", "The owner of the conversation."),
            Field("kind", "string", "What was done."),
            Field("outcome", "string", "applied, rejected, vetoed or expected."),
            Field("setting", "string", "The setting whose threshold was passed."),
            Field("measured", "integer", "The number that passed it."),
            Field("threshold", "integer", "The threshold."),
            Field("source", "string", "How the number was had."),
            Field("tokens_before", "integer", "Tokens of the context before, estimated."),
            Field("tokens_after", "integer", "Tokens of the context after, estimated."),
            Field("bytes_before", "integer", "Bytes of the request before."),
            Field("bytes_after", "integer", "Bytes of the request after."),
            Field("by", "string", "Who asked for it by hand.", may_be_null=True),
            Field("summary_model", "string", "The model of the summary.", may_be_null=True),
            Field(
                "summary_cost_micros", "integer", "Its cost in millionths of a dollar.",
                may_be_null=True,
            ),
        ),
        _read_reductions,
    ),
)  # fmt: skip
