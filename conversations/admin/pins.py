"""Pins: who keeps which originals in full, one row for each press of the button."""

from __future__ import annotations

from django.contrib import admin

from conversations.admin.base import OwnerFilter, ReadOnly, link
from conversations.models import Pin


@admin.register(Pin)
class PinAdmin(ReadOnly):
    heavy = ("conversation__instructions", "conversation__policy")
    list_display = ("created_at", "what", "is_pinned", "actor", "conversation")
    list_filter = ("is_pinned", OwnerFilter, "created_at")
    list_select_related = ("conversation", "actor")
    date_hierarchy = "created_at"
    ordering = ("-pk",)
    search_fields = ("conversation__title", "actor__username", "tool_use_id")
    fields = ("place", "what", "is_pinned", "who", "created_at", "link", "chain")

    @admin.display(description="what")
    def what(self, row: Pin) -> str:
        return row.tool_use_id if row.seq is None else f"message {row.seq}"

    @admin.display(description="by")
    def who(self, row: Pin) -> str:
        return link(row.actor)

    @admin.display(description="conversation")
    def place(self, row: Pin) -> str:
        return link(row.conversation)
