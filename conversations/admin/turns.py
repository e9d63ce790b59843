"""Turns: their states and endings."""

from __future__ import annotations

from django.contrib import admin

from conversations.admin.base import OwnerFilter, ReadOnly, link, listing
from conversations.models import ApiCall, ToolCall, Turn


@admin.register(Turn)
class TurnAdmin(ReadOnly):
    heavy = ("error_text", "conversation__instructions", "conversation__policy")
    list_display = (
        "created_at", "owner", "conversation", "number", "state", "finish_reason", "error_code",
        "ended_at",
    )  # fmt: skip
    list_filter = ("state", "finish_reason", OwnerFilter, "created_at")
    list_select_related = ("conversation", "conversation__owner")
    date_hierarchy = "created_at"
    ordering = ("-pk",)
    search_fields = ("conversation__title", "conversation__owner__username", "error_code")
    fieldsets = (
        ("Where", {"fields": ("place", "owner", "number", "before", "public_id")}),
        ("How it went", {"fields": ("state", "finish_reason", "error_code", "error_text")}),
        ("Its record", {"fields": ("calls", "tools")}),
        ("Attempts", {"fields": ("attempt", "retry_at", "stop_requested_at")}),
        ("Lease", {"fields": ("lease_owner", "lease_generation", "lease_until")}),
        ("Times", {"fields": ("created_at", "started_at", "ended_at")}),
    )

    @admin.display(description="user", ordering="conversation__owner__username")
    def owner(self, row: Turn) -> str:
        return link(row.conversation.owner)

    @admin.display(description="conversation")
    def place(self, row: Turn) -> str:
        return link(row.conversation)

    @admin.display(description="retry of")
    def before(self, row: Turn) -> str:
        return link(row.retry_of)

    @admin.display(description="calls")
    def calls(self, row: Turn) -> str:
        return listing(ApiCall, f"{row.calls.count()}", turn__id__exact=row.pk)

    @admin.display(description="tool calls")
    def tools(self, row: Turn) -> str:
        return listing(ToolCall, f"{row.tool_calls.count()}", turn__id__exact=row.pk)
