"""What each person of the list of people has spent of the limit that is nearest."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils import timezone

from conversations.admin.keyed_page import KeyedPage
from conversations.budgets.spend_desk import DeskRow, filter_desk, read_desk
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


def _find_nearest(keys: list[int]) -> dict[int, DeskRow]:
    """Return the fullest row of the spend desk of each person; it counts what admission counts."""
    now, found = timezone.now(), dict[int, DeskRow]()
    rows = filter_desk(scope=Budget.Scope.USER, now=now)
    for window in rows.filter(user__in=keys, budget__unit=MONEY.name):
        if window.user_id is not None:
            found.setdefault(window.user_id, read_desk(window, now))
    return found


def _find_own_limits(keys: list[int]) -> dict[int, int]:
    rows = Budget.objects.filter(user__in=keys, unit=MONEY.name, is_active=True)
    return dict(rows.order_by("-limit").values_list("user", "limit"))
