"""The spend desk: every budget in its present window, the nearest to its limit first.

A row is a budget of the site, of a group or of one member. What counts is what counts at admission:
a person's allowance that another one outranks is left out, and what was used under another
allowance of the same unit and period is included. The forecast goes on as since the beginning of
the window.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import Group
from django.db.models import (
    BigIntegerField,
    Exists,
    F,
    FloatField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce, NullIf
from django.utils import timezone

from conversations.budgets.current_use import filter_open_windows, filter_running_grants
from conversations.budgets.units import MONEY
from conversations.models import Budget, BudgetWindow, User

#: No forecast before this share of the window has passed, in percent.
EARLIEST = 5
SCOPES = ("", *Budget.Scope.values)


@dataclass(frozen=True, slots=True)
class DeskRow:
    """A budget's present window; `forecast` is None where there is no basis for one."""

    window: int
    budget: Budget
    user: User | None
    starts_at: datetime
    ends_at: datetime | None
    limit: int
    spent: int
    held: int
    forecast: int | None

    @property
    def is_over(self) -> bool:
        """Whether the limit is reached, or will be at this pace."""
        return max(self.spent, self.forecast or 0) >= self.limit


def filter_desk(
    *,
    scope: str = "",
    name: str = "",
    group: Group | None = None,
    centre: str = "",
    now: datetime | None = None,
) -> QuerySet[BudgetWindow]:
    """Return the present windows, with `due`, `total` and `on_hold`, the fullest first."""
    now = now or timezone.now()
    rows = filter_open_windows(now).filter(budget__is_active=True).filter(~_is_outranked())
    # A limit a minute is there to be reached, and over before it is read.
    rows = rows.exclude(budget__period=Budget.Period.MINUTE)
    if scope == "user":
        rows = rows.exclude(user=None)
    elif scope:
        rows = rows.filter(budget__scope=scope, user=None)
    if name:
        named = Q(user__username__icontains=name) | Q(budget__group__name__icontains=name)
        rows = rows.filter(named)
    if group is not None:
        rows = rows.filter(Q(user__groups=group) | Q(budget__group=group, user=None))
    if centre:
        rows = rows.filter(user__cost_centre__code__iexact=centre)
    rows = rows.annotate(
        due=F("budget__limit") + _sum_grants(now),
        total=_sum_use(F("spent") + F("overrun")),
        on_hold=_sum_use(F("held")),
    )
    share = Cast("total", FloatField()) / NullIf(Cast("due", FloatField()), 0.0)
    rows = rows.annotate(share=Coalesce(share, 1e9))
    return rows.select_related("budget__user", "budget__group", "user").order_by("-share", "pk")


def read_desk(window: BudgetWindow, now: datetime) -> DeskRow:
    """Return the row of a window that `filter_desk` has read."""
    spent = window.total  # type: ignore[attr-defined]
    return DeskRow(
        window.pk, window.budget, window.user, window.starts_at, window.ends_at,
        window.due, spent, window.on_hold,  # type: ignore[attr-defined]
        forecast_spending(spent, window.starts_at, window.ends_at, now),
    )  # fmt: skip


def forecast_spending(
    spent: int, starts_at: datetime, ends_at: datetime | None, now: datetime
) -> int | None:
    """Return what will be spent at the end of a window at the pace since its beginning."""
    if ends_at is None:
        return None
    whole, passed = (ends_at - starts_at).total_seconds(), (now - starts_at).total_seconds()
    if passed * 100 < whole * EARLIEST:
        return None
    return max(spent, int(spent * whole / passed))


def read_group(text: str) -> Group | None:
    """Return the group of this key; None for all people."""
    is_key = text.isdecimal() and len(text) < 10
    return Group.objects.filter(pk=text).first() if is_key else None


def filter_people(name: str = "", group: Group | None = None) -> QuerySet[User]:
    """Return the active people with `own`, what each may spend a month by their own budget."""
    mine = Budget.objects.filter(
        user=OuterRef("pk"),
        is_active=True,
        unit=MONEY.name,
        period=Budget.Period.MONTH,
        model="",
        kind=Budget.Kind.PER_MEMBER,
    )
    rows = User.objects.filter(is_active=True, username__icontains=name)
    if group is not None:
        rows = rows.filter(groups=group)
    own = Subquery(mine.values("limit")[:1], output_field=BigIntegerField())
    return rows.annotate(own=own).order_by("username")


def _sum_grants(now: datetime) -> Coalesce:
    is_theirs = Q(user=None) | Q(user=OuterRef("user"))
    rows = filter_running_grants(now).filter(is_theirs, budget=OuterRef("budget"))
    return _or_nothing(rows.order_by().values("budget").annotate(sum=Sum("amount")).values("sum"))


def _sum_use(amount: Combinable) -> Coalesce:
    """Add up a pool's window, or a person's windows of the same unit and period."""
    names = ("budget__kind", "budget__unit", "budget__period", "budget__model")
    alike = {name: OuterRef(name) for name in names}
    is_same = Q(pk=OuterRef("pk")) | Q(
        user=OuterRef("user"), starts_at=OuterRef("starts_at"), **alike
    )
    rows = BudgetWindow.objects.filter(is_same).order_by()
    return _or_nothing(rows.values("user").annotate(sum=Sum(amount)).values("sum"))


def _or_nothing(rows: QuerySet[Any]) -> Coalesce:
    return Coalesce(Subquery(rows, output_field=BigIntegerField()), 0)


def _is_outranked() -> Q:
    """Tell whether another allowance applies to the person instead of the window's."""
    alike = {name: OuterRef(f"budget__{name}") for name in ("unit", "period", "model")}
    others = Budget.objects.filter(is_active=True, kind=Budget.Kind.PER_MEMBER, **alike)
    theirs = others.filter(user=OuterRef("user"))
    of_groups = others.filter(group__user=OuterRef("user"))
    is_same = Q(limit=OuterRef("budget__limit"), pk__lt=OuterRef("budget"))
    larger = of_groups.filter(Q(limit__gt=OuterRef("budget__limit")) | is_same)
    is_beaten = (
        (Q(Exists(theirs)) & ~Q(budget__scope="user"))
        | (Q(budget__scope="site") & Q(Exists(of_groups)))
        | (Q(budget__scope="group") & Q(Exists(larger)))
    )
    return Q(user__isnull=False, budget__kind=Budget.Kind.PER_MEMBER) & is_beaten
