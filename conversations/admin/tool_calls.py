"""Tool calls: name, result state, and, with the permission to read content, input and output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from conversations.accounts import reading_log
from conversations.admin.base import ReadOnly, TurnOwnerFilter, format_json, link_row, short_id
from conversations.admin.content_access import open_content
from conversations.context.view import wire
from conversations.context.view.blocks import read_result_text
from conversations.log.findings import DAMAGE
from conversations.models import McpTool, ToolCall
from tools.framework.registry import TOOLS


class ToolFilter(admin.SimpleListFilter):
    """By a tool of the registry; the search finds names that a model invented."""

    title = _("tool")
    parameter_name = "tool"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in TOOLS]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows if self.value() is None else rows.filter(name=self.value())


class EffectFilter(admin.AllValuesFieldListFilter):
    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        for each in super().choices(changelist):
            yield each | {"display": name_effect(str(each["display"]))}


@admin.register(ToolCall)
class ToolCallAdmin(ReadOnly):
    linked_lookups = ("turn__id__exact", "turn__conversation__id__exact")
    heavy = (
        "input", "details", "turn__error_text", "turn__conversation__instructions",
        "turn__conversation__policy",
    )  # fmt: skip
    list_display = (
        "id", "name", "does", "state", "owner", "place", "turn_link", "started_at", "ended_at"
    )  # fmt: skip
    list_display_links = ("id", "name")
    list_filter = ("state", ("effect", EffectFilter), ToolFilter, TurnOwnerFilter, "started_at")
    list_select_related = ("turn", "turn__conversation", "turn__conversation__owner")
    ordering = ("-pk",)
    search_fields = (
        "name", "tool_use_id", "turn__conversation__public_id",
        "turn__conversation__owner__username",
    )  # fmt: skip
    fieldsets = (
        (
            _("Where"),
            {"fields": ("place", "owner", "turn_link", "position", "tool_use_id", "given_id")},
        ),
        (
            _("What"),
            {"fields": ("name", "does", "state", "started_at", "ended_at", "output_digest")},
        ),
    )

    @admin.display(description=_("effect"), ordering="effect")
    def does(self, row: ToolCall) -> str:
        return name_effect(row.effect)

    @admin.display(description=_("digest of the result"))
    def output_digest(self, row: ToolCall) -> str:
        return str(row.output_id or "–")

    @admin.display(description=_("user"), ordering="turn__conversation__owner__username")
    def owner(self, row: ToolCall) -> str:
        return link_row(row.turn.conversation.owner)

    @admin.display(description=_("chat"))
    def place(self, row: ToolCall) -> str:
        return link_row(row.turn.conversation, short_id(row.turn.conversation))

    @admin.display(description=_("turn"))
    def turn_link(self, row: ToolCall) -> str:
        return link_row(row.turn)

    def review(self, request: HttpRequest, row: ToolCall) -> dict[str, Any]:
        if not open_content(
            request, row.turn.conversation, reading_log.TOOL_CALL % {"entry": row.tool_use_id}
        ):
            return {"is_closed": True}
        details = json.dumps(row.details, ensure_ascii=False)
        return {
            "input": format_json(row.input),
            "output": _output(row),
            "details": format_json(details),
        }


def name_effect(value: str) -> str:
    """Return what people read for an effect; other texts as they are."""
    return str(dict(McpTool.Effect.choices).get(value, value))


def _output(row: ToolCall) -> str:
    if row.output is None:
        return ""
    try:
        return read_result_text(wire.decode(row.output.text))
    except DAMAGE:
        return row.output.text
