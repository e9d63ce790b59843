"""Crossings: the percents of its limit that a window has passed, each recorded once.

Notices and alerts are made of them. A settlement, a correction, and a change of a budget or of who
is in a group can make a window pass one. A limit a minute is there to be reached: nobody is told.

What is saved is looked at at once, and a change that takes several steps after the last of them
(`recording_afterwards`): the allowance that would apply in between is nobody's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.db.models import Model, Q
from django.db.models.signals import m2m_changed, post_save
from django.utils import timezone

from conversations.budgets.effective import BudgetStatus
from conversations.budgets.spending import filter_spending, read_spending_row
from conversations.budgets.status import (
    compute_status,
    filter_windows,
    find_effective_budgets,
    rule_of,
)
from conversations.budgets.windows import make_windows_of_use
from conversations.db import transact
from conversations.log.chain import append_rows, lock_site_chain
from conversations.models import Budget, Crossing, User

#: The percent at which all of a limit is spent; recorded whatever the budget names.
_WHOLE = 100
_ALLOWANCE = Budget.Kind.PER_MEMBER
#: The status that passed a percent, by window and percent.
_Passed = dict[tuple[int, int], BudgetStatus]
#: Unit, period and model of allowances that were changed, and of whom; None: of everybody.
_Changed = dict[tuple[str, str, str], set[int] | None]
#: What is looked at when the present block ends; None: there is none, all is looked at at once.
_changed: ContextVar[_Changed | None] = ContextVar("changed", default=None)


def record_crossings(*, user_id: int, windows: AbstractSet[int]) -> None:
    """Record the soft percents, and the limits, that were passed by use in these windows, which the
    caller has locked.

    An allowance that was set meanwhile counts it, too, in a window of its own.
    """
    effective = find_effective_budgets(user_id, timezone.now())
    found = [budget for budget in effective if not budget.rule.is_rate]
    present = list(filter_windows(found)) if found else []
    passed: _Passed = {}
    for budget in found:
        if any(window.pk in windows and budget.counts(window) for window in present):
            one = compute_status(budget, present)
            for window in filter(budget.is_of, present):
                passed |= _find_passed(window.pk, one)
    _append_crossings(passed)


@transact
def record_staff_crossings(**where: Any) -> None:
    """Record what open windows have passed after staff changed them or their budgets.

    `where` are look-ups of windows, which may be of several people or of nobody.
    """
    now, passed = timezone.now(), _Passed()
    is_limited = Q(user=None) | Q(user__is_exempt=False) | Q(budget__kind=Budget.Kind.OWN)
    for window in filter_spending(now=now).filter(is_limited, **where):
        row, rule = read_spending_row(window, now), rule_of(window.budget)
        one = BudgetStatus(rule, row.starts_at, row.ends_at, row.limit, row.spent, row.held)
        passed |= _find_passed(window.pk, one)
    _append_crossings(passed)


def record_changed_allowances(
    *, unit: str, period: str, model: str, people: Collection[int] | None
) -> None:
    """Record what has been passed after allowances of a unit, period and model were changed.

    `people` are those whose allowance may be another one now; None: everybody.
    """
    if period == Budget.Period.MINUTE:
        return
    changed, slot = _changed.get(), (unit, period, model)
    if changed is None:
        _record_slot(*slot, people)
        return
    others = changed.get(slot, set())
    changed[slot] = None if people is None or others is None else others.union(people)


@contextmanager
def recording_afterwards(*, budgets: Collection[int] = ()) -> Iterator[None]:
    """Record at the end of this block what its changes of allowances and groups have passed.

    The caller's transaction spans the block. `budgets` are the keys of rows that may get another
    unit, period, model or subject in it: where they were, other allowances apply from then on.
    Within another such block, all is recorded at the end of that one.
    """
    outer = _changed.get()
    changed = _Changed() if outer is None else outer
    token = _changed.set(changed)
    try:
        for budget in Budget.objects.filter(pk__in=budgets, is_active=True, kind=_ALLOWANCE):
            _record_allowance(budget)
        yield
    finally:
        _changed.reset(token)
    if outer is None:
        for slot, people in changed.items():
            _record_slot(*slot, people)


@transact
def _record_slot(unit: str, period: str, model: str, people: Collection[int] | None) -> None:
    slot = {"unit": unit, "period": period, "model": model}
    make_windows_of_use(slot=slot, people=people)
    alike = {f"budget__{name}": value for name, value in slot.items()}
    whose = {} if people is None else {"user__in": people}
    record_staff_crossings(budget__kind=_ALLOWANCE, **alike, **whose)


def watch_limits() -> None:
    """Record what windows have passed whenever a budget, or who is in a group, is changed."""
    name = "agentweb-crossings"
    post_save.connect(_record_saved, sender=Budget, dispatch_uid=name)
    m2m_changed.connect(_record_moved, sender=User.groups.through, dispatch_uid=name)


def _record_saved(instance: Budget, *, raw: bool, created: bool, **_: Any) -> None:
    if raw:
        return
    if instance.kind == _ALLOWANCE:
        _record_allowance(instance)
    elif not created:
        record_staff_crossings(budget=instance.pk)


def _record_allowance(budget: Budget) -> None:
    record_changed_allowances(
        unit=budget.unit, period=budget.period, model=budget.model, people=_list_people(budget)
    )


def _record_moved(
    instance: Model, *, action: str, pk_set: Collection[int] | None, **_: Any
) -> None:
    if action not in ("post_add", "post_remove", "post_clear"):
        return
    # Of a group that is emptied nobody says who was in it: None, as for everybody.
    people = [instance.pk] if isinstance(instance, User) else pk_set
    slots = Budget.objects.filter(is_active=True, kind=_ALLOWANCE).order_by()
    for unit, period, model in slots.values_list("unit", "period", "model").distinct():
        record_changed_allowances(unit=unit, period=period, model=model, people=people)


def _list_people(budget: Budget) -> list[int] | None:
    """Return whom an allowance is for; None: everybody."""
    if budget.user_id is not None:
        return [budget.user_id]
    if budget.group_id is None:
        return None
    return list(User.objects.filter(groups=budget.group_id).values_list("pk", flat=True))


def _find_passed(window: int, one: BudgetStatus) -> _Passed:
    percents = (*one.rule.percents, _WHOLE)
    return {(window, percent): one for percent in percents if percent <= one.percent}


def _append_crossings(passed: Mapping[tuple[int, int], BudgetStatus]) -> None:
    if _list_new(passed):
        chain = lock_site_chain()
        # Read again, as another process may have recorded the same before it released the chain.
        if rows := _list_new(passed):
            append_rows(rows, chain)


def _list_new(passed: Mapping[tuple[int, int], BudgetStatus]) -> list[Crossing]:
    """Return the rows of what is not recorded yet."""
    if not passed:
        return []
    crossings = Crossing.objects.filter(window__in={window for window, _ in passed})
    known = set(crossings.values_list("window", "percent"))
    return [
        Crossing(window_id=window, percent=percent, spent=one.spent, limit=one.limit)
        for (window, percent), one in passed.items()
        if (window, percent) not in known
    ]
