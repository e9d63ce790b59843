"""One change of the limits of many people: planned, shown, then made whole or not at all.

A plan says for each person what is so now, what will be, or why nothing is done. Its digest stands
for all of that: a change is made only if planning it again, under locks, gives the same plan. The
number of queries does not depend on the number of people.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import IntegrityError
from django.db.models import Q, QuerySet, TextChoices
from django.utils import timezone, translation
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from conversations.budgets.crossings import record_changed_allowances
from conversations.budgets.current_use import sum_running_grants
from conversations.budgets.effective import choose_effective
from conversations.budgets.grants import COUNTED, EXEMPT, BudgetError, FormUsed
from conversations.budgets.money_records import changed_by, record_rows
from conversations.budgets.status import rule_of
from conversations.budgets.units import MONEY, show_amount
from conversations.conf import conf
from conversations.context.translation import mark_recorded
from conversations.context.view import wire
from conversations.db import transact
from conversations.log.chain import append_rows, lock_site_chain
from conversations.models import Budget, Grant, User
from conversations.rendering.numbers import write_number

_A_MONTH = mark_recorded(gettext_noop("A month: %(before)s → %(after)s: %(reason)s"))
_A_MINUTE = mark_recorded(gettext_noop("A minute: %(before)s → %(after)s: %(reason)s"))
_NONE = mark_recorded(gettext_noop("no limit for this person alone"))

#: Most people of one change.
MOST_PEOPLE = 5_000
CHANGED = _("Something has changed since the preview. Look at it again.")


class BulkKind(TextChoices):
    LIMIT = "limit", _("Set what each may spend a month")
    REQUESTS = "requests", _("Set the requests a minute of each")
    TOKENS = "tokens", _("Set the tokens a minute of each")
    GRANT = "grant", _("Add to the monthly limit of each")
    EXEMPT = "exempt", _("Exempt from budgets")
    COUNTED = "counted", _("Exempt no longer")

    @property
    def sets_limit(self) -> bool:
        return self in (BulkKind.LIMIT, BulkKind.REQUESTS, BulkKind.TOKENS)

    @property
    def has_amount(self) -> bool:
        return self.sets_limit or self is BulkKind.GRANT

    @property
    def unit(self) -> str:
        """What its amounts count."""
        return self.value if self in (BulkKind.REQUESTS, BulkKind.TOKENS) else MONEY.name

    @property
    def period(self) -> str:
        return Budget.Period.MONTH if self.unit == MONEY.name else Budget.Period.MINUTE


@dataclass(frozen=True, slots=True)
class BulkChange:
    """What is to be done for each person; `amount` None of a limit ends those for them alone."""

    kind: BulkKind
    amount: int | None
    until: datetime | None
    reason: str
    #: Identifies the submitted form: grants of one form are given once.
    form: UUID


@dataclass(frozen=True, slots=True)
class BulkStep:
    """What is done for one person: amounts, None without a limit; `skipped` says why nothing is.

    It is in English, as a plan is the same for readers of every language.
    """

    user_id: int
    name: str
    before: int | None
    after: int | None
    skipped: str = ""
    budget_id: int | None = None

    @property
    def why(self) -> str:
        return gettext(self.skipped)


@dataclass(frozen=True, slots=True)
class BulkPlan:
    kind: BulkKind
    steps: tuple[BulkStep, ...]

    @property
    def done(self) -> tuple[BulkStep, ...]:
        return tuple(step for step in self.steps if not step.skipped)

    @property
    def skipped(self) -> tuple[BulkStep, ...]:
        return tuple(step for step in self.steps if step.skipped)

    @property
    def digest(self) -> str:
        return wire.digest(repr((self.kind.value, self.steps)))

    def sum_limits(self) -> tuple[int, int]:
        """Return what those whom it changes may spend together, before and after."""
        rows = self.done
        return sum(one.before or 0 for one in rows), sum(one.after or 0 for one in rows)


def plan_change(people: QuerySet[User], change: BulkChange) -> BulkPlan:
    """Plan a change for people, by their names; five queries at most."""
    rows = list(people.order_by("username").only("username", "is_exempt")[: MOST_PEOPLE + 1])
    if len(rows) > MOST_PEOPLE:
        words = _("These are more than %(n)s people: choose fewer of them.")
        raise BudgetError(words % {"n": write_number(MOST_PEOPLE)})
    match change.kind:
        case kind if kind.sets_limit:
            steps = _plan_limits(rows, change)
        case BulkKind.GRANT:
            steps = _plan_grants(rows, change)
        case _:
            steps = _plan_exemptions(rows, is_exempt=change.kind is BulkKind.EXEMPT)
    return BulkPlan(change.kind, tuple(steps))


def perform_change(
    *, people: QuerySet[User], change: BulkChange, digest: str, actor: User
) -> BulkPlan:
    """Make the change that was previewed as `digest`; BudgetError where it would be another."""
    if not change.reason.strip():
        raise BudgetError(_("Say why: a reason is needed."))
    try:
        return _perform(people, change, digest, actor)
    except IntegrityError as error:
        raise BudgetError(CHANGED) from error


@transact
def _perform(people: QuerySet[User], change: BulkChange, digest: str, actor: User) -> BulkPlan:
    keys = list(people.order_by("pk").values_list("pk", flat=True)[: MOST_PEOPLE + 1])
    if change.kind in (BulkKind.EXEMPT, BulkKind.COUNTED):
        list(User.objects.select_for_update(no_key=True).filter(pk__in=keys).order_by("pk"))
    else:
        budgets = _filter_allowances(change.kind, keys).order_by("pk")
        list(budgets.select_for_update(of=("self",)).values_list("pk", flat=True))
    if change.kind is BulkKind.GRANT:
        _demand_unused(change.form, keys)
    plan = plan_change(people, change)
    if plan.digest != digest:
        raise BudgetError(CHANGED)
    with changed_by(actor.pk, change.reason.strip()[:200]):
        match change.kind:
            case kind if kind.sets_limit:
                _set_limits(plan, change.amount)
            case BulkKind.GRANT:
                _give_grants(plan, change, actor)
            case _:
                _set_exemptions(plan, is_exempt=change.kind is BulkKind.EXEMPT)
    _log_steps(plan, change, actor)
    return plan


def _demand_unused(form: UUID, keys: Iterable[int]) -> None:
    """Raise FormUsed where one of these people has a grant of the form; previewing it anew would
    not help.
    """
    if Grant.objects.filter(form__in=[uuid5(form, str(key)) for key in keys]).exists():
        raise FormUsed


def _filter_own(kind: BulkKind, keys: Collection[int]) -> QuerySet[Budget]:
    return _filter_kind(kind).filter(user__in=keys)


def _filter_allowances(kind: BulkKind, keys: Collection[int]) -> QuerySet[Budget]:
    """Return the allowances that a change is of and that may apply to these people."""
    theirs = Q(user__in=keys) | Q(scope="site")
    groups = User.groups.through.objects.filter(user__in=keys).values("group")
    return _filter_kind(kind).filter(theirs | Q(group__in=groups))


def _filter_kind(kind: BulkKind) -> QuerySet[Budget]:
    return Budget.objects.filter(
        is_active=True, kind=Budget.Kind.PER_MEMBER, unit=kind.unit, period=kind.period, model=""
    )


def _plan_limits(people: Iterable[User], change: BulkChange) -> Iterable[BulkStep]:
    rows = list(people)
    own = {one.user_id: one for one in _filter_own(change.kind, [person.pk for person in rows])}
    for person in rows:
        budget = own.get(person.pk)
        before = budget.limit if budget else None
        none, alike = (
            gettext_noop("has no limit for this person alone"),
            gettext_noop("has this limit already"),
        )
        same = none if before is None else alike
        skipped = same if before == change.amount else ""
        yield BulkStep(
            person.pk, person.username, before, change.amount,
            skipped, budget.pk if budget else None,
        )  # fmt: skip


def _plan_grants(people: Iterable[User], change: BulkChange) -> Iterable[BulkStep]:
    rows = list(people)
    keys = [person.pk for person in rows]
    budgets = list(_filter_allowances(change.kind, keys).select_related("group"))
    members: defaultdict[int, set[int]] = defaultdict(set)
    for user, group in User.groups.through.objects.filter(user__in=keys).values_list(
        "user", "group"
    ):
        members[user].add(group)
    more = sum_running_grants([one.pk for one in budgets])
    for person in rows:
        theirs = [
            rule_of(one)
            for one in budgets
            if one.scope == "site" or one.user_id == person.pk
            or one.group_id in members[person.pk]
        ]  # fmt: skip
        if person.is_exempt or not theirs:
            exempt, free = (
                gettext_noop("is exempt from budgets"),
                gettext_noop("has no limit a month"),
            )
            why = exempt if person.is_exempt else free
            yield BulkStep(person.pk, person.username, None, None, why)
            continue
        (rule,) = choose_effective(theirs)
        before = rule.limit + more[rule.id, None] + more[rule.id, person.pk]
        after = before + (change.amount or 0)
        yield BulkStep(person.pk, person.username, before, after, budget_id=rule.id)


def _plan_exemptions(people: Iterable[User], *, is_exempt: bool) -> Iterable[BulkStep]:
    same = gettext_noop("is exempt already") if is_exempt else gettext_noop("is not exempt")
    for person in people:
        skipped = same if person.is_exempt == is_exempt else ""
        yield BulkStep(person.pk, person.username, None, None, skipped)


def _set_limits(plan: BulkPlan, limit: int | None) -> None:
    present = [step.budget_id for step in plan.done if step.budget_id is not None]
    changed = {"is_active": False} if limit is None else {"limit": limit}
    Budget.objects.filter(pk__in=present).update(**changed)
    new = [
        Budget(
            user_id=step.user_id, limit=limit, time_zone=conf.budget_time_zone,
            unit=plan.kind.unit, period=plan.kind.period,
        )
        for step in plan.done
        if step.budget_id is None and limit is not None
    ]  # fmt: skip
    Budget.objects.bulk_create(new)
    record_rows(Budget, [*present, *(one.pk for one in new)])
    record_changed_allowances(
        unit=plan.kind.unit,
        period=plan.kind.period,
        model="",
        people=[step.user_id for step in plan.done],
    )


def _give_grants(plan: BulkPlan, change: BulkChange, actor: User) -> None:
    now, amount = timezone.now(), change.amount
    if amount is None or (change.until is not None and change.until <= now):
        raise BudgetError(_("A grant has an amount, and ends later than now."))
    grants = [
        Grant(
            budget_id=step.budget_id, user_id=step.user_id, amount=amount, starts_at=now,
            expires_at=change.until, reason=change.reason.strip()[:200], actor=actor,
            form=uuid5(change.form, str(step.user_id)),
        )
        for step in plan.done
        if step.budget_id is not None
    ]  # fmt: skip
    append_rows(grants, lock_site_chain())


def _set_exemptions(plan: BulkPlan, *, is_exempt: bool) -> None:
    keys = [step.user_id for step in plan.done]
    User.objects.filter(pk__in=keys).update(is_exempt=is_exempt)
    record_rows(User, keys)


def _log_steps(plan: BulkPlan, change: BulkChange, actor: User) -> None:
    """Write what was done into Django's log, for the page of each person."""
    kind = ContentType.objects.get_for_model(User)
    LogEntry.objects.bulk_create(
        LogEntry(
            user=actor, content_type=kind, object_id=str(step.user_id), object_repr=step.name,
            action_flag=CHANGE, change_message=describe_step(plan.kind, step, change.reason),
        )
        for step in plan.done
    )  # fmt: skip


def describe_step(kind: BulkKind, step: BulkStep, reason: str) -> str:
    """Say what is done for a person, as they see it on their page's history."""
    if kind in (BulkKind.EXEMPT, BulkKind.COUNTED):
        return (EXEMPT if kind is BulkKind.EXEMPT else COUNTED) % {"reason": reason}
    with translation.override("en"):  # the record is in one language
        before, after = _show(step.before, kind.unit), _show(step.after, kind.unit)
    words = _A_MONTH if kind.period == Budget.Period.MONTH else _A_MINUTE
    return words % {"before": before, "after": after, "reason": reason}


def _show(amount: Any, unit: str) -> str:
    return _NONE if amount is None else show_amount(amount, unit)
