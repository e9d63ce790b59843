"""Pins: who pinned or unpinned which originals, one row for each action."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from conversations.admin.base import OfConversation, OwnerFilter, link_row
from conversations.models import Pin


@admin.register(Pin)
class PinAdmin(OfConversation):
    heavy = ("conversation__instructions", "conversation__policy")
    list_display = ("created_at", "what", "is_pinned", "actor", "place")
    list_filter = ("is_pinned", OwnerFilter, "created_at")
    list_select_related = ("conversation", "actor")
    date_hierarchy = "created_at"
    ordering = ("-pk",)
    search_fields = ("conversation__public_id", "actor__username", "tool_use_id")
    fields = ("place", "what", "is_pinned", "who", "created_at", "link", "chain")

    @admin.display(description=_("part"))
    def what(self, row: Pin) -> str:
        return (
            row.tool_use_id
            if row.seq is None
            else str(_("message %(number)s") % {"number": row.seq})
        )

    @admin.display(description=_("set by"))
    def who(self, row: Pin) -> str:
        return link_row(row.actor)
