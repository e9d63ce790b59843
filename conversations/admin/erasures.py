"""Erasures: whose conversations were erased and when, as figures; the content is gone."""

from __future__ import annotations

from django.contrib import admin
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.translation import gettext_lazy as _

from conversations.admin.base import DirectOwnerFilter, ReadOnly, format_json, link_row
from conversations.context.view import wire
from conversations.models import Erasure, ErasureProof
from conversations.rendering.numbers import dollars

#: Searches that the page of an erasure lists, newest first.
MOST_PROOFS = 20


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
        (_("Times"), {"fields": ("begun_at", "deleted_at", "rule", "due_at", "erased_at")}),
        (_("Money"), {"fields": ("cost", "by_day")}),
        (_("Chain"), {"fields": ("links", "chain")}),
        (_("Proof"), {"fields": ("proofs",)}),
    )

    @admin.display(description=_("user"), ordering="owner__username")
    def person(self, row: Erasure) -> str:
        return link_row(row.owner)

    @admin.display(description=_("cost"), ordering="cost_micros")
    def cost(self, row: Erasure) -> str:
        return dollars(row.cost_micros)

    @admin.display(description=_("by day and model"))
    def by_day(self, row: Erasure) -> str:
        return format_json(wire.encode(row.usage))

    @admin.display(description=_("searches for what was erased"))
    def proofs(self, row: Erasure) -> str:
        proofs = row.proofs.order_by("-pk")[:MOST_PROOFS]
        lines = (
            (
                f"{timezone.localtime(proof.proven_at):%Y-%m-%d %H:%M}",
                link_row(proof, f"{proof.found} found"),
            )
            for proof in proofs
        )
        return (
            format_html_join("", "<div>{}: {}</div>", lines) or "none yet: manage.py erase --prove"
        )


@admin.register(ErasureProof)
class ErasureProofAdmin(ReadOnly):
    heavy = ("places",)
    list_display = ("proven_at", "conversation", "found", "phrases", "words", "backup")
    list_filter = ("proven_at",)
    list_select_related = ("erasure",)
    date_hierarchy = "proven_at"
    ordering = ("-pk",)
    search_fields = ("erasure__conversation",)
    fields = (
        "proven_at",
        "conversation",
        "phrases",
        "words",
        "found",
        "backup",
        "by_place",
        "link",
        "chain",
    )

    @admin.display(description=_("chat"), ordering="erasure__conversation")
    def conversation(self, row: ErasureProof) -> str:
        return link_row(row.erasure, str(row.erasure.conversation)[:8])

    @admin.display(description=_("by place"))
    def by_place(self, row: ErasureProof) -> str:
        return format_json(wire.encode(row.places))
