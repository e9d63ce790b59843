"""All sealed secrets of the site: which of them open, and all of them sealed with the first key.

A secret that is sealed with the first key is left as it is, and each row is a transaction of its
own, so a rotation that was interrupted is finished by the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from allauth.mfa.models import Authenticator
from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import Model

from conversations.context.translation import gettext_noop, mark_recorded
from conversations.db import transact
from conversations.models import BudgetAlert, MailAccount, McpServer, User
from conversations.toolbox.secrets import SecretUnreadable, reseal, unseal

_ROTATED = mark_recorded(
    gettext_noop("Sealed %(count)s secrets with the first key; %(number)s rows stay closed.")
)


@dataclass(frozen=True, slots=True)
class SealedTable:
    """A table with sealed secrets: its fields, and what a row is called for an operator."""

    model: type[Model]
    fields: tuple[str, ...]
    name: Callable[[Any], str]
    owner: str = ""


#: Where the app and the recovery codes of a person have theirs, within the JSON of `data`.
_OF_FACTORS = ("secret", "seed", "migrated_codes")
TABLES = (
    SealedTable(
        MailAccount,
        ("sealed_secret",),
        lambda row: f"mail account {row.pk} of {row.owner}",
        "owner",
    ),
    SealedTable(
        McpServer, ("sealed_environment", "sealed_headers"), lambda row: f"MCP server {row.name}"
    ),
    SealedTable(BudgetAlert, ("sealed_secret",), lambda row: f"budget alert {row.name}"),
    SealedTable(
        Authenticator, ("data",), lambda row: f"second factor {row.pk} of {row.user}", "user"
    ),
)


@dataclass(slots=True)
class Rotation:
    """What a rotation did: secrets sealed anew, those that were already, and rows left closed."""

    sealed: int = 0
    current: int = 0
    closed: tuple[str, ...] = ()


def list_closed_secrets() -> list[str]:
    """Name the rows with a secret that no key of the site opens."""
    found = []
    for table in TABLES:
        for row in _list_rows(table):
            try:
                for field in table.fields:
                    _change_texts(getattr(row, field), unseal)
            except SecretUnreadable:
                found.append(table.name(row))
    return found


def rotate_secrets(*, actor: User) -> Rotation:
    """Seal every secret with the first key, and note it in the record of changes."""
    done, closed = Rotation(), []
    for table in TABLES:
        for key in _list_rows(table).values_list("pk", flat=True):
            try:
                sealed, current = _rotate_row(table, key)
            except SecretUnreadable:
                closed.append(table.name(_list_rows(table).get(pk=key)))
            else:
                done.sealed, done.current = done.sealed + sealed, done.current + current
    done.closed = tuple(closed)
    text = _ROTATED % {"count": f"{done.sealed:,}", "number": f"{len(closed):,}"}
    LogEntry.objects.create(
        user=actor, object_repr="sealed secrets", action_flag=CHANGE, change_message=text
    )
    return done


@transact
def _rotate_row(table: SealedTable, key: Any) -> tuple[int, int]:
    """Seal the secrets of a row that is still there; return how many, and how many were so."""
    manager: Any = table.model._default_manager
    row = manager.select_for_update().filter(pk=key).first()
    counts = [0, 0]
    for field in table.fields if row is not None else ():
        made = _change_texts(getattr(row, field), partial(_reseal, counts))
        setattr(row, field, made)
    if counts[0]:
        row.save(update_fields=table.fields)
    return counts[0], counts[1]


def _reseal(counts: list[int], text: str) -> str:
    made = reseal(text)
    counts[made == text] += 1
    return made


def _list_rows(table: SealedTable) -> Any:
    rows = table.model._default_manager.order_by("pk")
    return rows.select_related(table.owner) if table.owner else rows


def _change_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a field with its sealed texts changed."""
    if isinstance(value, str):
        return change(value) if value else value
    if isinstance(value, list):
        return [_change_texts(one, change) for one in value]
    return {
        name: _change_texts(one, change) if name in _OF_FACTORS else one
        for name, one in value.items()
    }
