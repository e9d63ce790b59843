"""Turns: their states and endings."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from conversations.accounts import reading_log
from conversations.admin.base import OfConversation, OwnerFilter, SeenFilter, link_list, link_row
from conversations.admin.content_access import open_content
from conversations.models import ApiCall, ToolCall, Turn


class FinishFilter(SeenFilter):
    """By why the answer ended, in the API's words or ours."""

    title = _("why it ended")
    parameter_name = path = "finish_reason"


@admin.register(Turn)
class TurnAdmin(OfConversation):
    linked_lookups = ("conversation__id__exact",)
    heavy = ("error_text", "conversation__instructions", "conversation__policy")
    list_display = (
        "created_at", "owner", "place", "number", "state", "finish_reason", "error_code",
        "ended_at",
    )  # fmt: skip
    list_filter = ("state", FinishFilter, OwnerFilter, "created_at")
    list_select_related = ("conversation", "conversation__owner")
    date_hierarchy = "created_at"
    ordering = ("-created_at", "-pk")
    search_fields = ("conversation__public_id", "conversation__owner__username", "error_code")
    fieldsets = (
        (_("Where"), {"fields": ("place", "owner", "number", "before", "public_id")}),
        (_("How it went"), {"fields": ("state", "finish_reason", "error_code")}),
        (_("Its record"), {"fields": ("calls", "tools")}),
        (_("Attempts"), {"fields": ("attempt", "retry_at", "stop_requested_at")}),
        (_("Lease"), {"fields": ("lease_owner", "lease_generation", "lease_until")}),
        (_("Times"), {"fields": ("created_at", "started_at", "ended_at")}),
    )

    @admin.display(description=_("retry of"))
    def before(self, row: Turn) -> str:
        return link_row(row.retry_of)

    @admin.display(description=_("calls"))
    def calls(self, row: Turn) -> str:
        return link_list(ApiCall, f"{row.calls.count()}", turn__id__exact=row.pk)

    @admin.display(description=_("tool calls"))
    def tools(self, row: Turn) -> str:
        return link_list(ToolCall, f"{row.tool_calls.count()}", turn__id__exact=row.pk)

    def review(self, request: HttpRequest, row: Turn) -> dict[str, Any]:
        # An error text may quote content.
        if not row.error_text:
            return {}
        if not open_content(request, row.conversation, reading_log.ERROR % {"entry": row.number}):
            return {"is_closed": True}
        return {"error_text": row.error_text}
