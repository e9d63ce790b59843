"""A person's budgets for their usage page: spent and held of each, and when it resets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from django.db.models import F, Sum

from conversations.budgets.current_use import filter_grants_for
from conversations.budgets.effective import BudgetStatus, Rule, list_outranked
from conversations.budgets.status import list_rules, list_statuses
from conversations.budgets.units import MONEY
from conversations.budgets.usage.days import ONE, Span
from conversations.budgets.usage.erased import list_erased_within
from conversations.models import ApiCall, Budget, BudgetWindow


@dataclass(frozen=True, slots=True)
class Granted:
    """A grant on top of the limit; `is_for_all`: everybody under the budget has it."""

    amount: int
    expires_at: datetime | None
    is_for_all: bool


@dataclass(frozen=True, slots=True)
class Allowance:
    """One budget that applies; `spent` includes what settled above its hold."""

    period: str
    limit: int
    spent: int
    held: int
    resets_at: datetime | None
    note: str = ""
    unit: str = MONEY.name
    #: Where it comes from, such as "from group Research".
    source: str = ""
    scope: str = "user"
    is_pool: bool = False
    #: Allowances that this one overrides, in order of precedence.
    instead_of: tuple[Rule, ...] = ()
    #: The grants that `limit` includes.
    grants: tuple[Granted, ...] = ()
    #: The model or the family that it counts alone, such as Opus; "": all models.
    model: str = ""
    is_own: bool = False
    #: Whether it limits a minute, for whose end a call waits.
    is_rate: bool = False
    #: When it was set, if that was after its window began: it counts from then.
    counts_from: datetime | None = None
    #: Micro-dollars spent before that in its window, where a person limits themselves: what does
    #: not count, and what counts because it was spent under an earlier limit of theirs.
    spent_before: int = 0
    counted_before: int = 0

    @property
    def used(self) -> int:
        return self.spent + self.held

    @property
    def left(self) -> int:
        return max(0, self.limit - self.used)

    @property
    def is_over(self) -> bool:
        return self.spent >= self.limit and not self.is_rate

    @property
    def is_near(self) -> bool:
        return not (self.is_over or self.is_rate) and self.spent * 5 >= self.limit * 4


def list_allowances(user_id: int) -> tuple[Allowance, ...]:
    """Return the budgets that apply, ordered by unit, then the shortest period first."""
    units, periods = list(Budget.Unit), list(Budget.Period)

    def place(one: BudgetStatus) -> tuple[int, int, str]:
        unit, period = Budget.Unit(one.rule.unit), Budget.Period(one.rule.period)
        return units.index(unit), periods.index(period), one.rule.model

    found = sorted(list_statuses(user_id), key=place)
    if not found:
        return ()
    rules = list_rules(user_id)
    granted = _list_grants(user_id, [one.rule for one in found])
    set_at = _list_beginnings(found)
    rows = []
    for one in found:
        row = _build_allowance(one, rules, granted.get(one.rule.id, []))
        row = replace(row, counts_from=(at := set_at.get(one.rule.id)))
        if at and one.rule.is_own:
            counted = _sum_counted(user_id, one)
            before = max(0, _sum_earlier(user_id, one, at) - counted)
            row = replace(row, spent_before=before, counted_before=counted)
        rows.append(row)
    return tuple(rows)


def _list_beginnings(found: Iterable[BudgetStatus]) -> dict[int, datetime]:
    """Return when budgets were set that count from then, and not from where their window begins.

    An allowance counts the use under an earlier one, too.
    """
    starts = {one.rule.id: one.starts_at for one in found if one.rule.kind != "per_member"}
    rows = Budget.objects.filter(pk__in=starts).values_list("pk", "created_at") if starts else ()
    return {key: at for key, at in rows if at > starts[key]}


def _sum_earlier(user_id: int, one: BudgetStatus, at: datetime) -> int:
    """Return what the person's calls have cost in the window before `at`, in micro-dollars.

    Of erased conversations only the days are known: those count that were over at `at`.
    """
    calls = ApiCall.objects.filter(conversation__owner=user_id, sent_at__lt=at)
    kept = calls.filter(sent_at__gte=one.starts_at).aggregate(micros=Sum("result__cost_micros"))
    days = Span(one.starts_at.astimezone(UTC).date(), at.astimezone(UTC).date() - ONE)
    erased = sum(row.figures.micros for row in list_erased_within(days, user_id))
    return (kept["micros"] or 0) + erased


def _sum_counted(user_id: int, one: BudgetStatus) -> int:
    """Return what counts in a person's limit though it was spent under an earlier one."""
    windows = BudgetWindow.objects.filter(user=user_id, budget__kind=Budget.Kind.OWN)
    earlier = windows.filter(starts_at=one.starts_at).exclude(budget=one.rule.id)
    return earlier.aggregate(sum=Sum(F("spent") + F("overrun")))["sum"] or 0


def _build_allowance(
    one: BudgetStatus, rules: tuple[Rule, ...], granted: list[Granted]
) -> Allowance:
    return Allowance(
        period=one.rule.period,
        limit=one.limit,
        spent=one.spent,
        held=one.held,
        resets_at=one.ends_at,
        note=one.rule.note,
        unit=one.rule.unit,
        source=one.rule.source,
        scope=one.rule.scope,
        is_pool=one.rule.is_pool,
        instead_of=list_outranked(rules, one.rule),
        grants=tuple(granted),
        model=one.rule.model_name,
        is_own=one.rule.is_own,
        is_rate=one.rule.is_rate,
    )


def _list_grants(user_id: int, rules: list[Rule]) -> dict[int, list[Granted]]:
    found: dict[int, list[Granted]] = {}
    for row in filter_grants_for(user_id, [rule.id for rule in rules]):
        one = Granted(row.amount, row.expires_at, row.user_id is None)
        found.setdefault(row.budget_id, []).append(one)
    return found
