"""Transformations: what triggered each, what it did, every changed block before and after."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html_join

from conversations.admin.base import OwnerFilter, ReadOnly, link, pretty, step
from conversations.admin.reading import opened
from conversations.models import Transformation
from conversations.queries.reductions import reduction
from conversations.queries.requests import DAMAGE
from conversations.queries.words import decided
from conversations.templatetags.agentweb import dollars


@admin.register(Transformation)
class TransformationAdmin(ReadOnly):
    heavy = ("edits", "policy", "conversation__instructions", "conversation__policy")
    list_display = (
        "created_at", "kind", "outcome", "owner", "measured", "limit", "tokens", "setting",
        "conversation",
    )  # fmt: skip
    list_display_links = ("created_at", "kind")
    list_filter = ("kind", "outcome", "source", OwnerFilter, "created_at")
    list_select_related = ("conversation", "conversation__owner")
    date_hierarchy = "created_at"
    ordering = ("-pk",)
    search_fields = ("conversation__title", "conversation__owner__username", "note", "setting")
    fieldsets = (
        ("Where", {"fields": ("place", "owner", "turn_link", "seq", "parent", "created_at")}),
        (
            "Why",
            {
                "fields": (
                    "kind",
                    "outcome",
                    "measured",
                    "limit",
                    "setting",
                    "weighed",
                    "note",
                    "reason",
                    "person",
                )
            },
        ),
        ("What it did", {"fields": ("tokens", "bytes")}),
        ("Summary call", {"fields": ("summary", "summary_model", "summary_cost")}),
        ("Policy of that day", {"fields": ("numbers",), "classes": ("collapse",)}),
    )

    @admin.display(description="user", ordering="conversation__owner__username")
    def owner(self, row: Transformation) -> str:
        return link(row.conversation.owner)

    @admin.display(description="conversation")
    def place(self, row: Transformation) -> str:
        return link(row.conversation)

    @admin.display(description="turn")
    def turn_link(self, row: Transformation) -> str:
        return link(row.turn)

    @admin.display(description="threshold", ordering="threshold")
    def limit(self, row: Transformation) -> str:
        return f"{row.threshold:,}"

    @admin.display(description="measured", ordering="number")
    def measured(self, row: Transformation) -> str:
        return f"{row.number:,} ({row.source})"

    @admin.display(description="decided by")
    def weighed(self, row: Transformation) -> str:
        said = decided(row.decision)
        lines = format_html_join("", "<div>{}: {}</div>", said)
        return lines if said else "–"

    @admin.display(description="asked for by")
    def person(self, row: Transformation) -> str:
        return link(row.actor)

    @admin.display(description="tokens", ordering="tokens_before")
    def tokens(self, row: Transformation) -> str:
        return step(row.tokens_before, row.tokens_after)

    @admin.display(description="bytes")
    def bytes(self, row: Transformation) -> str:
        return step(row.bytes_before, row.bytes_after)

    @admin.display(description="call")
    def summary(self, row: Transformation) -> str:
        return link(row.summary_call)

    @admin.display(description="model")
    def summary_model(self, row: Transformation) -> str:
        return row.summary_call.model if row.summary_call else "–"

    @admin.display(description="cost")
    def summary_cost(self, row: Transformation) -> str:
        result = getattr(row.summary_call, "result", None)
        return f"{dollars(result.cost_micros)} ({result.cost_basis})" if result else "–"

    @admin.display(description="policy")
    def numbers(self, row: Transformation) -> str:
        return pretty(row.policy)

    def review(self, request: HttpRequest, row: Transformation) -> dict[str, Any]:
        if not opened(request, row.conversation, f"the changes of transformation {row.seq}"):
            return {"is_closed": True}
        try:
            return {"reduction": reduction(row.conversation, row.seq)}
        except DAMAGE as error:
            return {"damage": f"{type(error).__name__}: {error}"}
