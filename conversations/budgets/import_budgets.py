"""Import of budgets from a CSV file, in the format of the export.

A line sets one budget: it creates it, changes its limit, percents and note, or switches it off. An
empty cell leaves a value as it is. A budget that was used keeps its time zone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.utils import translation
from django.utils.translation import gettext as _

from conversations.budgets.amounts import Unreadable
from conversations.budgets.crossings import recording_afterwards
from conversations.budgets.csv_import import ApplyRow, LineRefused, Plan, Row, import_rows
from conversations.budgets.grants import BudgetError, set_limit
from conversations.budgets.units import parse_amount, show_amount
from conversations.models import Budget, User

COLUMNS = (
    "scope", "subject", "kind", "unit", "period", "limit", "time_zone", "soft_percents", "active",
    "note", "model",
)  # fmt: skip
_KEY = (*COLUMNS[:5], "model")
_CHOICES = {
    "scope": Budget.Scope.values, "kind": Budget.Kind.values, "unit": Budget.Unit.values,
    "period": Budget.Period.values, "active": ["yes", "no"],
}  # fmt: skip


def import_budgets(*, text: str, actor: User, expected: str = "") -> Plan:
    """Import budgets, all or none; a preview unless the digest is the `expected` one."""

    def ready(rows: list[Row]) -> ApplyRow:
        return _Importer(actor, _find_active_keys(rows), set()).take

    with transaction.atomic():
        with recording_afterwards():
            plan = import_rows(text, COLUMNS, ready, expected)
        transaction.set_rollback(not plan.is_kept)
    return plan


def _find_active_keys(rows: list[Row]) -> set[tuple[str, ...]]:
    return {_build_key(row) for row in rows if row["active"] != "no"}


def _build_key(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in _KEY)


@dataclass(frozen=True, slots=True)
class _Importer:
    actor: User
    #: Keys of the file's active lines, which override inactive ones; keys applied so far.
    active: set[tuple[str, ...]]
    done: set[tuple[str, ...]]

    def take(self, row: Row) -> tuple[str, str]:
        for name, choices in _CHOICES.items():
            if row[name] not in choices and (row[name] or name != "active"):
                raise LineRefused(
                    _("%(name)s is one of %(choices)s, not %(given)s.")
                    % {"name": name, "choices": ", ".join(choices), "given": repr(row[name])}
                )
        if row["kind"] == Budget.Kind.OWN:
            return "same", _tell(row, _("only the person changes it"))
        is_off, key = row["active"] == "no", _build_key(row)
        if is_off and key in self.active:
            return "same", _tell(row, _("another line sets it"))
        if key in self.done and is_off:
            return "same", _tell(row, _("off already"))
        if key in self.done:
            raise LineRefused(_tell(row, _("another line sets the same budget.")))
        self.done.add(key)
        return self._set(row, is_off=is_off)

    def _set(self, row: Row, *, is_off: bool) -> tuple[str, str]:
        where = {name: row[name] for name in ("kind", "unit", "period")} | _find_subject(row)
        where["model"] = row["model"].lower()
        scope = {"user": None, "group": None} | where
        before = Budget.objects.filter(scope=row["scope"], is_active=True, **scope).first()
        if is_off and before is None:
            return "same", _tell(row, _("off already"))
        limit = None if is_off else _read_limit(row, before)
        more: dict[str, Any] = {
            "zone": row["time_zone"] or None,
            "percents": row["soft_percents"] or None,
            "note": row["note"] or None,
        }
        try:
            after = set_limit(limit=limit, **where, **({} if is_off else more))
        except BudgetError as error:
            raise LineRefused(_tell(row, str(error))) from error
        if before is not None and _list_compared(before) == _list_compared(after):
            words = _("%(budget)s, as before") % {"budget": _describe_budget(after)}
            return "same", _tell(row, words)
        return self._describe_line(row, before, after)

    def _describe_line(self, row: Row, before: Budget | None, after: Budget) -> tuple[str, str]:
        with translation.override(None):  # the record is in one language
            record = f"From a CSV file: {_describe_change(before, after)}"
        LogEntry.objects.create(
            user=self.actor,
            content_type=ContentType.objects.get_for_model(Budget),
            object_id=str(after.pk),
            object_repr=str(after)[:200],
            action_flag=ADDITION if before is None else CHANGE,
            change_message=record,
        )
        verb = "create" if before is None else "change" if after.is_active else "off"
        return verb, _tell(row, _describe_change(before, after))


def _find_subject(row: Row) -> dict[str, Any]:
    name = row["subject"]
    match row["scope"]:
        case "site":
            if name:
                raise LineRefused(
                    _("A budget of the site has no subject, not %(name)s.") % {"name": repr(name)}
                )
            return {}
        case "group":
            group = Group.objects.filter(name=name).first()
            if group is None:
                raise LineRefused(_("There is no group %(name)s.") % {"name": repr(name)})
            return {"group": group}
        case _:
            user = User.objects.filter(username=name).first()
            if user is None:
                raise LineRefused(_("There is no user %(name)s.") % {"name": repr(name)})
            return {"user": user}


def _read_limit(row: Row, before: Budget | None) -> int:
    if before is not None and not row["limit"]:
        return before.limit
    try:
        return parse_amount(row["limit"], row["unit"])
    except Unreadable as error:
        raise LineRefused(f"limit: {error}.") from error


def _name_row(row: Row) -> str:
    return " ".join(filter(None, _build_key(row)))


def _tell(row: Row, words: str) -> str:
    return f"{_name_row(row)}: {words}"


def _list_compared(budget: Budget) -> tuple[object, ...]:
    return budget.limit, budget.soft_percents, budget.note, budget.is_active


def _describe_budget(budget: Budget) -> str:
    note = f", “{budget.note}”" if budget.note else ""
    return _("%(limit)s (told at %(percents)s)") % {
        "limit": show_amount(budget.limit, budget.unit),
        "percents": (budget.soft_percents or "–") + note,
    }


def _describe_change(before: Budget | None, after: Budget) -> str:
    if before is None:
        return _("%(budget)s, new") % {"budget": _describe_budget(after)}
    if not after.is_active:
        return _("%(budget)s, switched off") % {"budget": _describe_budget(before)}
    return f"{_describe_budget(before)} → {_describe_budget(after)}"
