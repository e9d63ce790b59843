"""Erasures: whose conversations were erased and when, as figures; the content is gone."""

from __future__ import annotations

from django.contrib import admin

from conversations.admin.base import DirectOwnerFilter, ReadOnly, format_json, link_row
from conversations.context.view import wire
from conversations.models import Erasure
from conversations.rendering.numbers import dollars


@admin.register(Erasure)
class ErasureAdmin(ReadOnly):
    heavy = ("usage",)
    list_display = ("erased_at", "person", "conversation", "messages", "calls", "cost")
    list_filter = (DirectOwnerFilter, "erased_at")
    list_select_related = ("owner",)
    date_hierarchy = "erased_at"
    ordering = ("-pk",)
    search_fields = ("owner__username", "conversation")
    fieldsets = (
        (None, {"fields": ("person", "conversation", "messages", "transformations", "calls")}),
        ("Times", {"fields": ("begun_at", "deleted_at", "due_at", "erased_at")}),
        ("Money", {"fields": ("cost", "by_day")}),
        ("Chain", {"fields": ("links", "chain")}),
    )

    @admin.display(description="user", ordering="owner__username")
    def person(self, row: Erasure) -> str:
        return link_row(row.owner)

    @admin.display(description="cost", ordering="cost_micros")
    def cost(self, row: Erasure) -> str:
        return dollars(row.cost_micros)

    @admin.display(description="by day and model")
    def by_day(self, row: Erasure) -> str:
        return format_json(wire.encode(row.usage))
