"""Approvals: who allowed which call, when and why; and the site's rules for tools.

A destination may be a person's address, so it is shown with the arguments on the call's own page,
which requires the permission to read content.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from conversations.admin.base import OfConversation, OwnerFilter, ShownLookups, link_row
from conversations.admin.tool_access import RuleForm
from conversations.models import Approval, ApprovalRule, EgressRule


@admin.register(Approval)
class ApprovalAdmin(OfConversation):
    heavy = (
        "conversation__instructions",
        "conversation__policy",
        "destination",
        "sources",
        "words",
        "call__input",
        "call__details",
        "call__flaw",
    )
    list_display = ("created_at", "tool", "reason", "verdict", "decided_by", "owner", "place")
    list_filter = ("reason", "decision__verdict", OwnerFilter, "created_at")
    list_select_related = ("conversation__owner", "call", "decision__actor")
    date_hierarchy = "created_at"
    ordering = ("-pk",)
    search_fields = ("conversation__public_id", "decision__actor__username", "call__name")
    fields = (
        "place", "call_link", "reason", "arguments_digest", "created_at", "expires_at",
        "verdict", "decided_by", "decided_at", "link", "chain",
    )  # fmt: skip

    @admin.display(description=_("tool"), ordering="call__name")
    def tool(self, row: Approval) -> str:
        return row.call.name

    @admin.display(description=_("call"))
    def call_link(self, row: Approval) -> str:
        return link_row(row.call, row.call.name)

    @admin.display(description=_("decision"), ordering="decision__verdict")
    def verdict(self, row: Approval) -> str:
        decision = _decision(row)
        return "–" if decision is None else decision.get_verdict_display()

    @admin.display(description=_("decided by"), ordering="decision__actor__username")
    def decided_by(self, row: Approval) -> str:
        decision = _decision(row)
        return link_row(None if decision is None else decision.actor)

    @admin.display(description=_("decided at"), ordering="decision__created_at")
    def decided_at(self, row: Approval) -> Any:
        decision = _decision(row)
        return None if decision is None else decision.created_at


def _decision(row: Approval) -> Any:
    return getattr(row, "decision", None)


@admin.register(EgressRule)
class EgressRuleAdmin(ShownLookups):
    list_display = ("group",)
    list_select_related = ("group",)
    search_fields = ("group__name",)
    show_full_result_count = False


@admin.register(ApprovalRule)
class ApprovalRuleAdmin(ShownLookups):
    form = RuleForm
    list_display = ("tool", "rule")
    list_filter = ("rule",)
    search_fields = ("tool",)
