"""Transformations: trigger, saving and cost of each, and each changed block side by side.

The list shows figures only, so it is for all staff who may view the table.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import F, Max, Min, Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext_lazy as _

from conversations.accounts import reading_log
from conversations.admin.base import (
    GroupFilter,
    ModelFilter,
    OfConversation,
    OwnerFilter,
    SeenFilter,
    format_json,
    format_step,
    link_row,
)
from conversations.admin.content_access import open_content
from conversations.admin.csv_export import SentAsFiles
from conversations.admin.review_sheets import write_transformations
from conversations.budgets.usage.savings import build_model_expression
from conversations.context.policy.policy import PRESETS
from conversations.inspector.review import find_call_number
from conversations.log.findings import DAMAGE, reraise_outage
from conversations.models import ApiCall, Transformation
from conversations.reductions.reduction_page import read_reduction
from conversations.reductions.shapes import Reduction
from conversations.reductions.words import describe_decision, name_preset
from conversations.rendering.numbers import dollars, write_number


class TurnModelFilter(ModelFilter):
    path = "of_model"


class PresetFilter(admin.SimpleListFilter):
    """By the preset of the recorded policy, whose name is the first field of the record."""

    title = _("policy")
    parameter_name = "policy"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name_preset(name)) for name in PRESETS]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        name = self.value()
        return rows if name is None else rows.filter(policy__startswith=f'{{"name":"{name}"')


class SourceFilter(SeenFilter):
    """By how the number behind the decision was had."""

    title = _("source")
    parameter_name = path = "source"


class SettingFilter(SeenFilter):
    """By the setting whose threshold was passed."""

    title = _("setting")
    parameter_name = path = "setting"


class HandFilter(admin.SimpleListFilter):
    title = _("asked for")
    parameter_name = "by"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("hand", _("By hand")), ("policy", _("By the policy"))]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "hand":
                return rows.exclude(actor=None)
            case "policy":
                return rows.filter(actor=None)
            case _:
                return rows


@admin.register(Transformation)
class TransformationAdmin(SentAsFiles, OfConversation):
    sheet, word = staticmethod(write_transformations), "transformations"
    linked_lookups = ("conversation__id__exact",)
    heavy = (
        "edits", "policy", "reason", "decision", "conversation__instructions",
        "conversation__policy", "summary_call__result__usage",
        "summary_call__result__error_message",
    )  # fmt: skip
    list_display = (
        "created_at", "kind", "outcome", "owner", "tokens", "saved", "trigger", "answered_by",
        "place", "turn_link", "summary_cost", "person",
    )  # fmt: skip
    list_display_links = ("created_at", "kind")
    list_filter = (
        "kind", "outcome", SourceFilter, HandFilter, SettingFilter, PresetFilter, TurnModelFilter,
        OwnerFilter, GroupFilter, "created_at",
    )  # fmt: skip
    list_select_related = (
        "conversation", "conversation__owner", "turn", "actor", "summary_call",
        "summary_call__result",
    )  # fmt: skip
    date_hierarchy = "created_at"
    ordering = ("-created_at", "-pk")
    search_fields = (
        "conversation__public_id", "conversation__owner__username", "conversation__owner__email",
        "setting",
    )  # fmt: skip
    _where = ("place", "owner", "turn_link", "answered_by", "seq", "parent", "created_at")
    _why = ("kind", "outcome", "measured", "limit", "setting", "weighed", "note", "person")
    fieldsets = (
        (_("Where"), {"fields": _where}),
        (_("Why"), {"fields": _why}),
        (_("What it did"), {"fields": ("tokens", "saved", "bytes")}),
        (_("Summary call"), {"fields": ("summary", "summary_model", "summary_cost")}),
        (_("Policy of that day"), {"fields": ("numbers",), "classes": ("collapse",)}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        freed = F("tokens_before") - F("tokens_after")
        rows = super().get_queryset(request)
        found: QuerySet[Any] = rows.annotate(of_model=build_model_expression(), freed=freed)
        return found

    @admin.display(description=_("model"), ordering="of_model")
    def answered_by(self, row: Any) -> str:
        return str(row.of_model)

    @admin.display(description=_("threshold"), ordering="threshold")
    def limit(self, row: Transformation) -> str:
        return write_number(row.threshold)

    @admin.display(description=_("measured"), ordering="number")
    def measured(self, row: Transformation) -> str:
        return f"{write_number(row.number)} ({row.source})"

    @admin.display(description=_("trigger"), ordering="setting")
    def trigger(self, row: Transformation) -> str:
        """Return the figure, its source, the threshold it passed, and the setting."""
        numbers = f"{write_number(row.number)} ({row.source}) over {write_number(row.threshold)}"
        return format_html("{}<br>{}", numbers, row.setting)

    @admin.display(description=_("decided by"))
    def weighed(self, row: Transformation) -> str:
        facts = describe_decision(row.decision)
        lines = format_html_join("", "<div>{}: {}</div>", facts)
        return lines if facts else "–"

    @admin.display(description=_("by hand of"), ordering="actor")
    def person(self, row: Transformation) -> str:
        return link_row(row.actor)

    @admin.display(description=_("tokens"), ordering="tokens_before")
    def tokens(self, row: Transformation) -> str:
        return format_step(row.tokens_before, row.tokens_after)

    @admin.display(description=_("saved"), ordering="freed")
    def saved(self, row: Any) -> str:
        return write_number(row.freed)

    @admin.display(description=_("bytes"))
    def bytes(self, row: Transformation) -> str:
        return format_step(row.bytes_before, row.bytes_after)

    @admin.display(description=_("call"))
    def summary(self, row: Transformation) -> str:
        return link_row(row.summary_call)

    @admin.display(description=_("model"))
    def summary_model(self, row: Transformation) -> str:
        return row.summary_call.model if row.summary_call else "–"

    @admin.display(description=_("summary cost"), ordering="summary_call__result__cost_micros")
    def summary_cost(self, row: Transformation) -> str:
        result = getattr(row.summary_call, "result", None)
        return f"{dollars(result.cost_micros)} ({result.cost_basis})" if result else "–"

    @admin.display(description=_("policy"))
    def numbers(self, row: Transformation) -> str:
        return format_json(row.policy)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        extra = {"is_untouched": not Transformation.objects.exists()} | (extra_context or {})
        return super().changelist_view(request, extra)

    def review(self, request: HttpRequest, row: Transformation) -> dict[str, Any]:
        of_row = row.conversation.transformations
        shown: dict[str, Any] = {
            "neighbours": of_row.aggregate(
                previous=Max("pk", filter=Q(seq__lt=row.seq)),
                next=Min("pk", filter=Q(seq__gt=row.seq)),
            )
        }
        if not open_content(request, row.conversation, reading_log.CHANGES % {"entry": row.seq}):
            return shown | {"facts": self._list_facts(row), "is_closed": True}
        # A reason may quote what a summary left out, so it is content.
        shown |= {"reason": row.reason, "call_after": _call_after(row)}
        try:
            found = read_reduction(row.conversation, row.seq)
        except DAMAGE as error:
            reraise_outage(error)
            problem = f"{type(error).__name__}: {error}"
            return shown | {"facts": self._list_facts(row), "damage": problem}
        return shown | {"facts": self._list_facts(row, found), "reduction": found}

    def _list_facts(
        self, row: Transformation, found: Reduction | None = None
    ) -> list[tuple[str, str]]:
        """Return what a reviewer asks first, in words: the trigger, the saving, the cost."""
        trigger = f"{self.measured(row)} > {self.limit(row)}" if row.threshold else ""
        facts = [
            (_("Outcome"), row.get_outcome_display()),
            (_("Measured and threshold"), trigger),
            (_("Tokens"), self.tokens(row)),
            (_("Cost of the summary"), self.summary_cost(row).strip("–")),
        ]
        why = found.why if found else None
        if found and why and row.outcome == "applied":
            saved = why.saved_micros
            facts += [
                (_("Calls since"), write_number(why.calls_since)),
                (_("Tokens not sent since"), write_number(why.saved_tokens)),
                (_("Saved since, about"), "" if saved is None else dollars(saved)),
                (_("Read again since"), write_number(found.recalls)),
            ]
        return [(str(name), value) for name, value in facts if value]


def _call_after(row: Transformation) -> int | None:
    """Return the inspector's number of the first reply of the turn that was sent with it."""
    calls = ApiCall.objects.filter(turn=row.turn_id, purpose="reply", tip__gte=row.seq)
    call = calls.order_by("number").first()
    return None if call is None else find_call_number(call)
