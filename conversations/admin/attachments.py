"""Attachments: owner and size; names and bytes are content."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from conversations.accounts import reading_log
from conversations.admin.base import DirectOwnerFilter, ReadOnly, link_row, short_id
from conversations.admin.content_access import open_content
from conversations.models import Attachment
from conversations.rendering.numbers import write_number


@admin.register(Attachment)
class AttachmentAdmin(ReadOnly):
    linked_lookups = ("conversation__id__exact",)
    heavy = ("name",)
    list_display = ("created_at", "person", "place", "media_type", "size", "measures", "estimate")
    list_filter = ("media_type", DirectOwnerFilter, "created_at")
    list_select_related = ("owner", "conversation")
    date_hierarchy = "created_at"
    ordering = ("-pk",)
    search_fields = ("conversation__public_id", "owner__username", "media_type")
    fields = ("person", "place", "media_type", "size", "measures", "estimate", "created_at")

    @admin.display(description=_("user"), ordering="owner__username")
    def person(self, row: Attachment) -> str:
        return link_row(row.owner)

    @admin.display(description=_("chat"))
    def place(self, row: Attachment) -> str:
        return (
            link_row(row.conversation, short_id(row.conversation)) if row.conversation else "unsent"
        )

    @admin.display(description=_("pixels or pages"))
    def measures(self, row: Attachment) -> str:
        if row.width:
            return f"{write_number(row.width)} × {write_number(row.height or 0)}"
        return f"{write_number(row.pages)} pages" if row.pages else "–"

    def review(self, request: HttpRequest, row: Attachment) -> dict[str, Any]:
        # An unsent file belongs to no conversation, so only its owner may see it.
        if row.conversation is None or not open_content(
            request, row.conversation, reading_log.ATTACHMENT
        ):
            return {"is_closed": True}
        return {"name": row.name}
