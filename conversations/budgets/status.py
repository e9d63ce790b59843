"""The use of a person's budgets: one source for admission, pill, usage page and admin.

It takes two queries, whatever the number of budgets and groups.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Q, QuerySet
from django.utils import timezone

from conversations.budgets.effective import BudgetStatus, Rule, choose_effective
from conversations.log.settings_version import cached_by_settings_version, is_reading
from conversations.models import Budget, BudgetWindow
from conversations.models.periods import compute_bounds


@dataclass(frozen=True, slots=True)
class EffectiveBudget:
    """A budget that applies now, in its present window, which may not exist yet.

    `user_id` is None for a pool; `limit` includes grants. `is_made`: the window existed when this
    was read; it may have been created since.
    """

    rule: Rule
    user_id: int | None
    starts_at: datetime
    ends_at: datetime | None
    limit: int
    is_made: bool = False

    def is_of(self, window: BudgetWindow) -> bool:
        """Return whether it is the window of exactly this budget."""
        mine = self.rule.id, self.user_id, self.starts_at
        return (window.budget_id, window.user_id, window.starts_at) == mine

    def counts(self, window: BudgetWindow) -> bool:
        """Return whether this budget counts what the window has used; `window.budget` is loaded."""
        if self.user_id is None or self.is_of(window):
            return self.is_of(window)
        other = window.budget
        kind = other.kind, other.unit, other.period, other.model, window.starts_at, window.ends_at
        mine = self.rule.kind, *self.rule.slot, self.starts_at, self.ends_at
        return window.user_id == self.user_id and kind == mine


#: Raw SQL, because it runs before and after each call, and the ORM takes longer to compile it than
#: the database takes to run it.
_BUDGETS = """
SELECT b.id, b.scope, b.kind, b.unit, b.period, b.time_zone, b."limit", b.soft_percents, g.name,
  b.note, b.model, COALESCE((
    SELECT SUM(r.amount) FROM conversations_grant r WHERE r.budget_id = b.id
      AND (r.user_id IS NULL OR r.user_id = %(user)s) AND r.starts_at <= %(now)s
      AND (r.expires_at IS NULL OR r.expires_at > %(now)s)), 0),
  CASE b.kind WHEN 'pool' THEN (
    SELECT MAX(w.starts_at) FROM conversations_budgetwindow w
    WHERE w.budget_id = b.id AND w.user_id IS NULL
  ) ELSE (
    SELECT MAX(w.starts_at) FROM conversations_budgetwindow w
    WHERE w.budget_id = b.id AND w.user_id = %(user)s
  ) END
FROM conversations_budget b LEFT JOIN auth_group g ON g.id = b.group_id
WHERE b.is_active
  AND (b.scope = 'site' OR b.user_id = %(user)s OR b.group_id IN (
    SELECT m.group_id FROM conversations_user_groups m WHERE m.user_id = %(user)s))
  AND (b.kind = 'own' OR NOT EXISTS (
    SELECT 1 FROM conversations_user u WHERE u.id = %(user)s AND u.is_exempt))
"""


def find_effective_budgets(
    user_id: int, now: datetime, models: Collection[str] = ()
) -> tuple[EffectiveBudget, ...]:
    """Return the budgets that apply to the person, in the order of their ids; one query.

    Where `models` are named, only those that apply to calls of one of them.
    """
    stored = connection.ops.adapt_datetimefield_value
    rows = _query_budgets(user_id, now)
    extra = {row[0]: (int(row[-2]), row[-1]) for row in rows}
    rules = map(_rule_of_row, rows)
    found = []
    for rule in choose_effective(rules):
        if models and not any(map(rule.counts_model, models)):
            continue
        starts, ends = compute_bounds(rule.period, rule.zone, now)
        granted, newest = extra[rule.id]
        user, is_made = None if rule.is_pool else user_id, newest == stored(starts)
        found.append(EffectiveBudget(rule, user, starts, ends, rule.limit + granted, is_made))
    return tuple(found)


def list_rules(user_id: int) -> tuple[Rule, ...]:
    """Return every active budget of the site, the person's groups and the person; one query."""
    return tuple(map(_rule_of_row, _query_budgets(user_id, timezone.now())))


def _query_budgets(user_id: int, now: datetime) -> list[tuple[Any, ...]]:
    if is_reading() and not _has_budgets():
        return []
    at = connection.ops.adapt_datetimefield_value(now)
    with connection.cursor() as cursor:
        cursor.execute(_BUDGETS, {"user": user_id, "now": at})
        return list(cursor.fetchall())


@cached_by_settings_version
def _has_budgets() -> bool:
    return Budget.objects.filter(is_active=True).exists()


def _rule_of_row(row: tuple[Any, ...]) -> Rule:
    key, scope, kind, unit, period, zone, limit, percents, group, note, model, *_rest = row
    return Rule(
        key, scope, kind, unit, period, zone, limit, _parse_percents(percents), group or "", note,
        model,
    )  # fmt: skip


def rule_of(budget: Budget) -> Rule:
    group = budget.group.name if budget.group else None
    return _rule_of_row((
        budget.pk, budget.scope, budget.kind, budget.unit, budget.period, budget.time_zone,
        budget.limit, budget.soft_percents, group, budget.note, budget.model,
    ))  # fmt: skip


def _parse_percents(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())


def filter_windows(found: Iterable[EffectiveBudget]) -> QuerySet[BudgetWindow]:
    """Return the windows that count in any of the budgets, in the order of their ids.

    One statement of one form, whatever the number of budgets. It may include windows that `counts`
    excludes, such as that of the day on which another budget's month began.
    """
    rows = list(found)
    pools = [budget for budget in rows if budget.user_id is None]
    own = [budget for budget in rows if budget.user_id is not None]
    wanted = Q(user__in={budget.user_id for budget in own}, starts_at__in=_list_starts(own))
    if pools:
        ids = sorted(budget.rule.id for budget in pools)
        wanted |= Q(budget__in=ids, user=None, starts_at__in=_list_starts(pools))
    return BudgetWindow.objects.filter(wanted).select_related("budget").order_by("pk")


def _list_starts(found: Iterable[EffectiveBudget]) -> list[datetime]:
    return sorted({budget.starts_at for budget in found})


def compute_status(budget: EffectiveBudget, windows: Iterable[BudgetWindow]) -> BudgetStatus:
    """Add up the windows that count in a budget."""
    here = [window for window in windows if budget.counts(window)]
    return BudgetStatus(
        budget.rule,
        budget.starts_at,
        budget.ends_at,
        budget.limit,
        sum(window.spent + window.overrun for window in here),
        sum(window.held for window in here),
    )


def list_statuses(user_id: int, now: datetime | None = None) -> tuple[BudgetStatus, ...]:
    """Return the status of each budget that applies to the person; none: nothing is limited."""
    found = find_effective_budgets(user_id, now or timezone.now())
    windows = list(filter_windows(found)) if found else []
    return tuple(compute_status(budget, windows) for budget in found)
