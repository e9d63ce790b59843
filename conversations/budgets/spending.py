"""What the Spending page shows: every budget in its present window, the nearest to its limit first.

A row is a budget of the site, of a group or of one member. What counts is what counts at admission:
a person's allowance that another one outranks is left out, and what was used under another
allowance of the same unit and period is included. Windows that are over stay as they were, whatever
was changed since: of a person's windows alike, that of the latest allowance is shown. The forecast
goes on as since the beginning of the window.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.contrib.auth.models import Group
from django.db.models import (
    BigIntegerField,
    Case,
    Exists,
    F,
    FloatField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    When,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce, NullIf
from django.utils import timezone

from conversations.budgets.current_use import filter_open_windows, filter_running_grants
from conversations.budgets.units import MONEY
from conversations.models import Budget, BudgetWindow, User
from conversations.models.periods import load_zone

#: No forecast before this share of the window has passed, in percent.
EARLIEST = 5
SCOPES = ("", *Budget.Scope.values)


@dataclass(frozen=True, slots=True)
class SpendingRow:
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


def filter_spending(
    *,
    scope: str = "",
    name: str = "",
    group: str = "",
    model: str = "",
    centre: str = "",
    day: date | None = None,
    now: datetime | None = None,
) -> QuerySet[BudgetWindow]:
    """Return windows with `due`, `total` and `on_hold`, the fullest first: the present ones, or
    those of the end of a day, which each budget's own time zone says.
    """
    now = now or timezone.now()
    rows = filter_open_windows(now) if day is None else _filter_windows_of(day, now)
    # A limit a minute is there to be reached, and over before it is read.
    rows = rows.exclude(budget__period=Budget.Period.MINUTE)
    counts = Q(budget__is_active=True) & ~_is_outranked()
    if day is not None:
        is_past = Q(ends_at__lte=now)
        counts = (counts & ~is_past) | (is_past & ~Q(Exists(_find_later())))
    rows = rows.filter(counts)
    if scope == "user":
        rows = rows.exclude(user=None)
    elif scope:
        rows = rows.filter(budget__scope=scope, user=None)
    rows = _filter_by_words(rows, name, group, model, centre).annotate(
        due=_find_limit(now),
        total=_sum_use(F("spent") + F("overrun")),
        on_hold=_sum_use(F("held")),
    )
    share = Cast("total", FloatField()) / NullIf(Cast("due", FloatField()), 0.0)
    rows = rows.annotate(share=Coalesce(share, 1e9))
    return rows.select_related("budget__user", "budget__group", "user").order_by("-share", "pk")


def _filter_by_words(
    rows: QuerySet[BudgetWindow], name: str, group: str, model: str, centre: str
) -> QuerySet[BudgetWindow]:
    if name:
        named = Q(user__username__icontains=name) | Q(budget__group__name__icontains=name)
        rows = rows.filter(named)
    if group:
        groups = _find_groups(group)
        of_group = Q(budget__group__in=groups, user=None)
        rows = rows.filter(of_group | Q(user__in=_list_members(groups)))
    if model:
        rows = rows.filter(budget__model__icontains=model)
    if centre:
        rows = rows.filter(_is_of_centre(centre, "user__cost_centre"))
    return rows


def _filter_windows_of(day: date, now: datetime) -> QuerySet[BudgetWindow]:
    """Return the windows at the end of a day, or now if it is not over."""
    zones = Budget.objects.order_by().values_list("time_zone", flat=True).distinct()
    found = Q(pk=None)
    for zone in zones:
        at = now
        if day < now.date() + timedelta(days=1):
            ends = datetime.combine(day + timedelta(days=1), time(), load_zone(zone))
            at = min(now, ends.astimezone(UTC) - timedelta(microseconds=1))
        is_in = Q(ends_at=None) | Q(ends_at__gt=at)
        found |= is_in & Q(budget__time_zone=zone, starts_at__lte=at)
    return BudgetWindow.objects.filter(found)


def _find_limit(now: datetime) -> Case:
    """Return the limit with all grants; of a window that is over, that of its last call, or of
    when it was made.
    """
    due = F("budget__limit") + _sum_grants(now)
    return Case(
        When(ends_at__lte=now, then=F("limit")), default=due, output_field=BigIntegerField()
    )


def _find_groups(text: str) -> QuerySet[Group]:
    """Return the group of this name, else those whose names have it as a part."""
    named = Group.objects.filter(name__iexact=text)
    return named if named.exists() else Group.objects.filter(name__icontains=text)


def _list_members(groups: QuerySet[Group]) -> QuerySet[Any, Any]:
    return User.groups.through.objects.filter(group__in=groups).values("user")


def _is_of_centre(text: str, path: str) -> Q:
    """Tell by code or name whether a person's cost centre is one that is searched for."""
    return Q(**{f"{path}__code__iexact": text}) | Q(**{f"{path}__name__icontains": text})


def read_spending_row(window: BudgetWindow, now: datetime) -> SpendingRow:
    """Return the row of a window that `filter_spending` has read."""
    spent = window.total  # type: ignore[attr-defined]
    return SpendingRow(
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


def filter_people(name: str = "", group: str = "", centre: str = "") -> QuerySet[User]:
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
    if group:
        rows = rows.filter(pk__in=_list_members(_find_groups(group)))
    if centre:
        rows = rows.filter(_is_of_centre(centre, "cost_centre"))
    own = Subquery(mine.values("limit")[:1], output_field=BigIntegerField())
    return rows.annotate(own=own).order_by("username")


def _sum_grants(now: datetime) -> Coalesce:
    is_theirs = Q(user=None) | Q(user=OuterRef("user"))
    rows = filter_running_grants(now).filter(is_theirs, budget=OuterRef("budget"))
    return _or_nothing(rows.order_by().values("budget").annotate(sum=Sum("amount")).values("sum"))


def _is_alike() -> Q:
    """Tell the windows of the same person, unit and period from the others."""
    names = ("budget__kind", "budget__unit", "budget__period", "budget__model", "starts_at", "user")
    return Q(**{name: OuterRef(name) for name in names})


def _find_later() -> QuerySet[BudgetWindow]:
    return BudgetWindow.objects.filter(_is_alike(), pk__gt=OuterRef("pk"))


def _sum_use(amount: Combinable) -> Coalesce:
    """Add up a pool's window, or a person's windows of the same unit and period."""
    rows = BudgetWindow.objects.filter(Q(pk=OuterRef("pk")) | _is_alike()).order_by()
    return _or_nothing(rows.values("user").annotate(sum=Sum(amount)).values("sum"))


def _or_nothing(rows: QuerySet[Any]) -> Coalesce:
    return Coalesce(Subquery(rows, output_field=BigIntegerField()), 0)


def _is_outranked() -> Q:
    """Tell whether the window's allowance does not apply to the person: another one does instead,
    or they have left its group.
    """
    alike = {name: OuterRef(f"budget__{name}") for name in ("unit", "period", "model")}
    others = Budget.objects.filter(is_active=True, kind=Budget.Kind.PER_MEMBER, **alike)
    theirs = others.filter(user=OuterRef("user"))
    of_groups = others.filter(group__user=OuterRef("user"))
    is_same = Q(limit=OuterRef("budget__limit"), pk__lt=OuterRef("budget"))
    larger = of_groups.filter(Q(limit__gt=OuterRef("budget__limit")) | is_same)
    members = User.groups.through.objects.filter(user=OuterRef("user"))
    is_member = Exists(members.filter(group=OuterRef("budget__group")))
    is_beaten = (
        (Q(Exists(theirs)) & ~Q(budget__scope="user"))
        | (Q(budget__scope="site") & Q(Exists(of_groups)))
        | (Q(budget__scope="group") & (Q(Exists(larger)) | ~Q(is_member)))
    )
    return Q(user__isnull=False, budget__kind=Budget.Kind.PER_MEMBER) & is_beaten
