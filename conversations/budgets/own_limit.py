"""A person's limit for themselves: money a month, which only they set, raise and remove.

It is a budget of the kind `own`: every call is held in it beside the budgets of the site, so it can
stop a person earlier and never later than those do.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from conversations.budgets.amounts import Unreadable
from conversations.budgets.effective import BudgetStatus
from conversations.budgets.grants import BudgetError, set_limit
from conversations.budgets.status import list_statuses
from conversations.budgets.units import MONEY, parse_amount, show_amount
from conversations.db import transact
from conversations.models import Budget, User

_SET: dict[str, Any] = {"kind": Budget.Kind.OWN, "unit": MONEY.name, "period": Budget.Period.MONTH}


class OwnLimitRefused(ValueError):
    """The amount cannot be a person's limit for themselves; the text says why."""

    code = "own_limit"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def find_own_limit(user_id: int) -> BudgetStatus | None:
    """Return the limit that the person has set for themselves, with what is spent of it."""
    return next((one for one in list_statuses(user_id) if one.rule.is_own), None)


@transact
def set_own_limit(*, user: User, text: str) -> None:
    """Set the person's limit of money a month as they write it; "" removes it."""
    # Serializes two submits of one person.
    User.objects.select_for_update().only("pk").get(pk=user.pk)
    if not text.strip():
        if find_own_limit(user.pk) is not None:
            set_limit(user=user, limit=None, **_SET)
        return
    limit, most = _read_dollars(text), _find_most(user.pk)
    if most is not None and limit > most:
        raise OwnLimitRefused(
            _("You may spend %(most)s a month: a limit of your own cannot be higher.")
            % {"most": show_amount(most, MONEY.name)}
        )
    try:
        set_limit(user=user, limit=limit, **_SET)
    except BudgetError as error:  # an amount too large for any budget
        raise OwnLimitRefused(_("Write an amount in dollars, such as 20.")) from error


def _read_dollars(text: str) -> int:
    try:
        limit = parse_amount(text, MONEY.name)
    except Unreadable as error:
        raise OwnLimitRefused(_("Write an amount in dollars, such as 20.")) from error
    if limit <= 0:
        raise OwnLimitRefused(_("Write an amount in dollars, such as 20."))
    return limit


def _find_most(user_id: int) -> int | None:
    """Return what the site allows the person a month, for all models; None: no limit."""
    found = [
        one.limit
        for one in list_statuses(user_id)
        if one.rule.kind == Budget.Kind.PER_MEMBER
        and one.rule.slot == (MONEY.name, Budget.Period.MONTH, "")
    ]
    return min(found, default=None)
