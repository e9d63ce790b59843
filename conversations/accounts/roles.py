"""Roles: groups with the rights that a job needs, made when they are missing.

A right is a sentence and the permissions behind it; a role is a set of rights. The groups are made
after a migration, and one that exists is left alone, so what an operator changed stays. Who has a
role that works in the admin is marked as staff, too. Four things are no right: groups and
permissions, staff accounts and exemptions are changed by superusers alone, and nobody sets another
person's password: superusers make links to a new one (accounts/reset_links.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db import connection, transaction

from conversations.accounts.reading_log import CONTENT

ALL = ("view", "add", "change", "delete")


@dataclass(frozen=True, slots=True)
class Right:
    """Something that a person may do in the admin, and the permissions that allow it."""

    name: str
    permissions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Role:
    """A group that is shipped, with its rights."""

    name: str
    rights: tuple[Right, ...]

    @property
    def permissions(self) -> frozenset[str]:
        return frozenset(name for right in self.rights for name in right.permissions)


def _list_permissions(verbs: Iterable[str], *tables: str) -> tuple[str, ...]:
    named = (table if "." in table else f"conversations.{table}" for table in tables)
    return tuple(
        f"{app}.{verb}_{table}"
        for app, table in (name.split(".") for name in named)
        for verb in verbs
    )


PEOPLE = Right("see people and groups", _list_permissions(["view"], "user", "auth.group"))
ACCOUNTS = Right(
    "add, invite and deactivate people who are no staff, set their context policy, release log-ins",
    (
        *_list_permissions(["view", "add", "change"], "invitation"),
        *_list_permissions(["add", "change"], "user"),
        *_list_permissions(["view", "delete"], "failedlogins"),
    ),
)
SPENDING = Right(
    "see calls, budgets, the ledger and prices",
    _list_permissions(
        ["view"], "apicall", "budget", "budgetwindow", "reservation", "ledgerentry", "grant",
        "crossing", "turncap", "apimodel", "modelprice", "costcentre",
        "moneyrecord",
    ),
)  # fmt: skip
BUDGETS = Right(
    "set budgets, caps, cost centres and alerts, grant and correct amounts, with a reason",
    (
        *_list_permissions(["add", "change", "delete"], "budget", "turncap"),
        *_list_permissions(["add", "change"], "costcentre"),
        *_list_permissions(["add"], "grant", "ledgerentry"),
        *_list_permissions(ALL, "budgetalert"),
        *_list_permissions(["view"], "alertdelivery"),
    ),
)
MODELS = Right(
    "set models, prices, effort, tools and MCP servers",
    (
        *_list_permissions(["view", "change"], "apimodel", "mcptool"),
        *_list_permissions(["view", "add", "change"], "modelprice"),
        *_list_permissions(ALL, "effortrule", "toolrule", "approvalrule", "mcpserver"),
        *_list_permissions(["view"], "mcpdecision", "mailaccount"),
    ),
)
PROMPTS = Right("write prompts for everybody or for groups", _list_permissions(ALL, "siteprompt"))
FIGURES = Right(
    "see figures and structure of conversations, and what was erased",
    _list_permissions(
        ["view"], "conversation", "turn", "apicall", "transformation", "toolcall", "approval",
        "attachment", "pin", "erasure", "erasureproof",
    ),
)  # fmt: skip
RETENTION = Right(
    "set after how many days chats go",
    (*_list_permissions(ALL, "retentionrule"), *_list_permissions(["view"], "legalhold")),
)
LINKS = Right(
    "see who shares chats by a link, and revoke links",
    _list_permissions(["view", "change"], "sharedlink"),
)
HOLDS = Right(
    "place and release legal holds, with a reason",
    _list_permissions(["view", "add"], "legalhold", "holdrelease"),
)
RECORD = Right(
    "see who read and changed what",
    _list_permissions(["view"], "admin.logentry", "databasemove", "moneyrecord"),
)
READING = Right("read what people wrote, each reading on record with a reason", (CONTENT,))
TOKENS = Right(
    "make API tokens for themselves, which read what they may see",
    _list_permissions(["view", "add", "change"], "apitoken"),
)
RIGHTS = (
    PEOPLE, ACCOUNTS, SPENDING, BUDGETS, MODELS, PROMPTS, FIGURES, RETENTION, LINKS, HOLDS,
    RECORD, TOKENS, READING,
)  # fmt: skip
ROLES = (
    Role(
        "Administrator",
        (PEOPLE, ACCOUNTS, SPENDING, MODELS, PROMPTS, FIGURES, RETENTION, LINKS, RECORD, TOKENS),
    ),
    Role("Budget officer", (PEOPLE, SPENDING, BUDGETS, TOKENS)),
    Role("Reviewer", (PEOPLE, FIGURES, TOKENS)),
    Role("Auditor", (PEOPLE, FIGURES, HOLDS, RECORD, TOKENS, READING)),
    Role("Member", ()),
)


def install_roles(using: str = "default", **_: Any) -> None:
    """Create the groups of roles that are missing, with their permissions."""
    if connection.alias != using:
        return
    present = set(connection.introspection.table_names())
    if not {Group._meta.db_table, Permission._meta.db_table} <= present:
        return
    with transaction.atomic():
        for role in ROLES:
            group, is_new = Group.objects.get_or_create(name=role.name)
            if is_new:
                group.permissions.set(_find_permissions(role))


def _find_permissions(role: Role) -> Iterator[Permission]:
    for permission in Permission.objects.select_related("content_type"):
        if f"{permission.content_type.app_label}.{permission.codename}" in role.permissions:
            yield permission


def render_roles() -> str:
    """Return the table of rights and roles, for the README."""
    names = [role.name for role in ROLES]
    lines = [f"| right | {' | '.join(names)} |", "|---|" + ":-:|" * len(names)]
    for right in RIGHTS:
        ticks = " | ".join("yes" if right in role.rights else "–" for role in ROLES)
        lines.append(f"| {right.name} | {ticks} |")
    return "\n".join(lines)
