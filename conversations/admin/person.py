"""What a person's page shows besides its fields: effective budgets, caps and policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _

from conversations.admin import policy_form
from conversations.admin.base import link_list
from conversations.admin.budget_actions import CORRECT, GRANT
from conversations.admin.budget_forms import describe_limit_change
from conversations.budgets.caps import Cap, list_turn_caps
from conversations.budgets.current_use import (
    filter_grants_for,
    list_corrections,
    list_effective_use,
)
from conversations.models import Budget, BudgetWindow, LedgerEntry, User
from conversations.rendering.numbers import dollars, write_number


def build_money_context(request: HttpRequest, user: User) -> dict[str, Any]:
    """Return the effective budgets, grants and corrections, and the caps of a turn.

    Empty for staff who may not view budgets.
    """
    has = request.user.has_perms
    if not has(("conversations.view_budget",)):
        return {}
    found = list_effective_use(user.pk)
    return {
        "effective": found,
        "grants": filter_grants_for(user.pk, [one.status.rule.id for one in found])[:50],
        "corrections": list_corrections(window__user=user)[:20],
        "caps": [(cap.name, _format_cap(cap), cap.source) for cap in list_turn_caps(user.pk)],
        "may_grant": has((GRANT, "conversations.view_budget")),
        "may_correct": has((CORRECT, "conversations.view_budgetwindow")),
        "may_set": has(("conversations.change_budget",)) or has(("conversations.change_turncap",)),
        "may_exempt": request.user.is_superuser,
        "windows": link_list(BudgetWindow, _("All windows"), user=user.pk),
        "entries": link_list(LedgerEntry, _("The ledger"), user=user.pk),
    }


def _format_cap(cap: Cap) -> str:
    if cap.name == "micros":
        return dollars(cap.number) if cap.number else _("no cap")
    return f"{write_number(cap.number)} s" if cap.name == "seconds" else write_number(cap.number)


def build_policy_context(form: Any, user: User) -> dict[str, Any]:
    """Return the table of the policy's numbers, unfolded where one of them is set."""
    rows = policy_form.build_rows(form, user)
    return {
        "policy_rows": rows,
        "has_policy_numbers": any(row.is_changed for row in rows[1:]),
        "policy_problem": policy_form.describe_problem(user),
    }


def describe_changes(form: Any, formsets: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the log entries of changed numbers: from what to what."""
    policy_was, limits_was = form.was
    user = form.instance
    for name, changes in (
        (
            "context policy",
            policy_form.describe_differences(policy_was, user.policy, policy_form.INHERITED),
        ),
        (
            "limits of the context policy",
            policy_form.describe_differences(limits_was, user.policy_limits, policy_form.FREE),
        ),
    ):
        if changes:
            yield {"changed": {"name": name, "object": str(user), "fields": changes}}
    for formset in formsets:
        for each in formset.initial_forms:
            if isinstance(each.instance, Budget):
                yield from describe_limit_change(each)
