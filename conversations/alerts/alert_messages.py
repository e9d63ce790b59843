"""What a receiver is told: a mail in the person's language, the JSON body of a webhook."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _

from conversations.accounts.preferences import read_preferences
from conversations.alerts.webhook import name_message
from conversations.budgets.units import show_amount
from conversations.models import AlertDelivery, Budget, BudgetAlert, Crossing, User
from conversations.models.periods import load_zone
from conversations.rendering.model_names import name_scope

#: What the numbers of a webhook count.
_UNITS = {Budget.Unit.MONEY: "micro-dollars"}


@dataclass(frozen=True, slots=True)
class AlertMail:
    to: str
    subject: str
    text: str


def write_mail(alert: BudgetAlert, crossing: Crossing | None, person: User) -> AlertMail:
    """Write the mail to a person in their language."""
    with translation.override(read_preferences(person.preferences).language or None):
        if crossing is None:
            text = _(
                "This is a test of the budget alert “%(name)s”. It arrived, so there is nothing to"
                " do."
            ) % {"name": alert.name}
            return AlertMail(person.email, _("Test of a budget alert"), text)
        values = {"percent": crossing.percent, "whose": name_subject(crossing)}
        subject = _("%(percent)d %% of a budget is spent: %(whose)s") % values
        return AlertMail(person.email, subject, _write_text(alert, crossing, person))


def write_body(delivery: AlertDelivery, alert: BudgetAlert, crossing: Crossing | None) -> bytes:
    """Write the body of a webhook; it is the same for each attempt."""
    body: dict[str, Any] = {
        "id": name_message(delivery.public_id), "kind": "test", "alert": alert.name,
    }  # fmt: skip
    if crossing is None:
        body["at"] = _write_moment(delivery.created_at)
    else:
        body |= _describe_crossing(alert, crossing)
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def name_subject(crossing: Crossing) -> str:
    """Name whose budget it is, in the present language."""
    window = crossing.window
    person, group = window.user or window.budget.user, window.budget.group
    if person is not None:
        whose = person.get_username()
    elif group is not None:
        whose = _("group %(name)s") % {"name": group.name}
    else:
        whose = _("everybody together")
    model = name_scope(window.budget.model)
    return f"{whose}, {model}" if model else whose


def _write_text(alert: BudgetAlert, crossing: Crossing, person: User) -> str:
    window, budget = crossing.window, crossing.window.budget
    text = _(
        "%(spent)s of %(limit)s is spent: %(percent)d %%.\n\n"
        "Whose budget: %(whose)s\nFrom: %(start)s\nUntil: %(end)s\nTime zone: %(zone)s\n\n"
        "You get this mail because the budget alert “%(name)s” of this site names you."
    ) % {
        "spent": show_amount(crossing.spent, budget.unit),
        "limit": show_amount(crossing.limit, budget.unit),
        "percent": crossing.percent,
        "whose": name_subject(crossing),
        "start": _show_moment(window.starts_at, budget) if window.ends_at else _("the beginning"),
        "end": _show_moment(window.ends_at, budget) if window.ends_at else _("no end"),
        "zone": budget.time_zone,
        "name": alert.name,
    }
    return f"{text}\n\n{_link(alert, budget)}" if person.is_staff else text


def _describe_crossing(alert: BudgetAlert, crossing: Crossing) -> dict[str, Any]:
    window, budget = crossing.window, crossing.window.budget
    person = window.user or budget.user
    return {
        "kind": "limit_reached" if crossing.percent >= 100 else "percent_passed",
        "at": _write_moment(crossing.created_at),
        "budget": budget.pk,
        "scope": budget.scope,
        "shared": budget.kind == Budget.Kind.POOL,
        "person": None if person is None else person.get_username(),
        "group": None if budget.group is None else budget.group.name,
        "model": budget.model or None,
        "percent": crossing.percent,
        "spent": crossing.spent,
        "limit": crossing.limit,
        "unit": _UNITS.get(Budget.Unit(budget.unit), budget.unit),
        "window": {
            "period": budget.period,
            "starts_at": _write_moment(window.starts_at),
            "ends_at": None if window.ends_at is None else _write_moment(window.ends_at),
            "time_zone": budget.time_zone,
        },
        "link": _link(alert, budget),
    }


def _link(alert: BudgetAlert, budget: Budget) -> str:
    return alert.origin + reverse("admin:conversations_budget_change", args=[budget.pk])


def _write_moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")


def _show_moment(at: datetime, budget: Budget) -> str:
    return f"{at.astimezone(load_zone(budget.time_zone)):%Y-%m-%d %H:%M}"
