"""What each person of the list of people has spent of the limit that is nearest."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils import timezone

from conversations.admin.keyed_page import KeyedPage
from conversations.budgets.spending import SpendingRow, filter_spending, read_spending_row
from conversations.budgets.units import MONEY
from conversations.models import Budget

_NEEDED = ("conversations.view_budget", "conversations.view_budgetwindow")


class PeopleWithSpending(KeyedPage):
    """A page of people, each with the present window of money that is nearest to its limit.

    `own_limit` is the limit of a budget of their own that nothing was spent of yet.
    """

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        keys = [row.pk for row in self.result_list]
        may_see = request.user.has_perms(_NEEDED)
        nearest = _find_nearest(keys) if may_see else {}
        limits = _find_own_limits(keys) if may_see else {}
        for row in self.result_list:
            row.nearest, row.own_limit = nearest.get(row.pk), limits.get(row.pk)


def _find_nearest(keys: list[int]) -> dict[int, SpendingRow]:
    """Return the fullest row of the Spending page for each person, counted as admission does."""
    now, found = timezone.now(), dict[int, SpendingRow]()
    rows = filter_spending(scope=Budget.Scope.USER, now=now)
    for window in rows.filter(user__in=keys, budget__unit=MONEY.name):
        if window.user_id is not None:
            found.setdefault(window.user_id, read_spending_row(window, now))
    return found


def _find_own_limits(keys: list[int]) -> dict[int, int]:
    rows = Budget.objects.filter(user__in=keys, unit=MONEY.name, is_active=True)
    return dict(rows.order_by("-limit").values_list("user", "limit"))
