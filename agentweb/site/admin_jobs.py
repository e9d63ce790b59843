"""The tables of the admin by what people come for, in the order in which most come."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

#: The tables of each job, by their models; what is in none is among the records.
JOBS: dict[str, tuple[Promise, tuple[str, ...]]] = {
    "review": (
        _("Review"),
        ("Conversation", "Transformation", "ApiCall", "Turn", "ToolCall", "Pin", "Attachment"),
    ),
    "money": (
        _("Money"),
        (
            "Budget", "Grant", "TurnCap", "CostCentre", "BudgetAlert", "AlertDelivery",
            "BudgetWindow", "LedgerEntry", "Reservation", "Crossing", "MoneyRecord",
        ),
    ),
    "people": (
        _("People"),
        (
            "User", "Group", "Invitation", "SecondFactorRule", "FailedLogIns", "ApiToken",
            "MailAccount", "SharedLink",
        ),
    ),
    "tools": (
        _("Tools and servers"),
        (
            "ToolRule", "ApprovalRule", "EgressRule", "Approval", "McpServer", "McpDecision",
            "SitePrompt",
        ),
    ),
    "models": (_("Models and prices"), ("ApiModel", "ModelPrice", "EffortRule")),
    "records": (
        _("Records"),
        (
            "LogEntry", "RetentionRule", "LegalHold", "HoldRelease", "Erasure", "ErasureProof",
            "DatabaseMove",
        ),
    ),
}  # fmt: skip


def group_tables(apps: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return Django's list of apps and their tables as one entry for each job that has any."""
    tables = {table["object_name"]: table for app in apps for table in app["models"]}
    place = {name: job for job, (_name, names) in JOBS.items() for name in names}
    found: dict[str, list[dict[str, Any]]] = {job: [] for job in JOBS}
    for name in (*place, *sorted(set(tables) - set(place))):
        if name in tables:
            found[place.get(name, "records")].append(tables[name])
    return [
        {
            "name": JOBS[job][0],
            "app_label": f"job-{job}",
            "app_url": f"{reverse('admin:index')}#job-{job}",
            "has_module_perms": True,
            "models": models,
        }
        for job, models in found.items()
        if models
    ]
