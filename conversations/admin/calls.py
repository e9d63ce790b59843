"""Calls: parameters, figures, cost, and the verification that the request can be rebuilt."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext_lazy as _

from conversations.accounts import reading_log
from conversations.admin import budget_actions
from conversations.admin.base import (
    ModelFilter,
    OfConversation,
    OwnerFilter,
    SeenFilter,
    format_json,
)
from conversations.admin.budget_actions import CORRECT
from conversations.admin.content_access import open_content
from conversations.admin.csv_export import SentAsFiles
from conversations.admin.review_sheets import write_calls
from conversations.budgets.usage.sums import FLAGGED, is_flagged
from conversations.inspector.review import find_call_number
from conversations.log.findings import DAMAGE
from conversations.log.rebuild import rebuild_request
from conversations.models import ApiCall, ApiResult
from conversations.rendering.numbers import dollars, write_number

#: Parameters and facts that contain or may quote what people wrote.
CONTENT = ("system", "error_message")
_HEAVY_RESULT = ("result__usage", "result__error_message")
_RESULT_FIELDS = (
    "status", "request_id", "http_status", "error_type", "error_message", "stop_reason",
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "first_event_ms",
    "duration_ms", "ended_at",
)  # fmt: skip


class FiguresFilter(admin.SimpleListFilter):
    """By whether the reported usage was implausible, or missing."""

    title = _("figures")
    parameter_name = "figures"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("flagged", _("flagged: impossible or missing"))]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.filter(FLAGGED) if self.value() == "flagged" else rows


class BasisFilter(SeenFilter):
    """By how the cost is known."""

    title = _("cost basis")
    parameter_name = "basis"
    path = "result__cost_basis"


@admin.register(ApiCall)
class ApiCallAdmin(SentAsFiles, OfConversation):
    sheet, word = staticmethod(write_calls), "calls"
    linked_lookups = ("turn__id__exact", "conversation__id__exact")
    heavy = (*_HEAVY_RESULT, "conversation__instructions", "conversation__policy")
    list_display = (
        "sent_at", "purpose", "model", "owner", "place", "status", "read", "written", "cost",
        "milliseconds",
    )  # fmt: skip
    list_display_links = ("sent_at", "purpose")
    list_filter = (
        "purpose", "result__status", BasisFilter, FiguresFilter, ModelFilter, OwnerFilter,
        "sent_at",
    )  # fmt: skip
    list_select_related = ("conversation", "conversation__owner", "result")
    date_hierarchy = "sent_at"
    ordering = ("-sent_at", "-pk")
    search_fields = (
        "conversation__public_id", "conversation__owner__username", "result__request_id",
        "result__error_type", "body_digest",
    )  # fmt: skip
    fieldsets = (
        (_("Where"), {"fields": ("place", "owner", "turn_link", "number", "sent_at")}),
        (
            _("What"),
            {"fields": ("purpose", "model", "cost_centre", "max_tokens", "tip", "body_bytes")},
        ),
        (
            _("Estimates, in tokens"),
            {"fields": ("estimated_tokens", "view_tokens", "overhead_tokens", "view_edits")},
        ),
        (_("Bound to"), {"fields": ("binding", "envelope_digest"), "classes": ("collapse",)}),
    )

    @admin.display(description=_("digest of the parameters"))
    def envelope_digest(self, row: ApiCall) -> str:
        return str(row.envelope_id)

    @admin.display(description=_("result"), ordering="result__status")
    def status(self, row: ApiCall) -> str:
        found = find_result(row)
        return found.get_status_display() if found else str(_("in doubt"))

    @admin.display(description=_("tokens in"))
    def read(self, row: ApiCall) -> str:
        found = find_result(row)
        if found is None or found.input_tokens is None:
            return "–"
        cached = (found.cache_read_tokens or 0) + (found.cache_write_tokens or 0)
        return write_number(found.input_tokens + cached)

    @admin.display(description=_("tokens out"), ordering="result__output_tokens")
    def written(self, row: ApiCall) -> str:
        found = find_result(row)
        return (
            write_number(found.output_tokens) if found and found.output_tokens is not None else "–"
        )

    @admin.display(description=_("cost"), ordering="result__cost_micros")
    def cost(self, row: ApiCall) -> str:
        found = find_result(row)
        if found is None:
            return "–"
        return f"{dollars(found.cost_micros)}{' ⚑ flagged' * is_flagged(found)}"

    @admin.display(description=_("duration (ms)"), ordering="result__duration_ms")
    def milliseconds(self, row: ApiCall) -> str:
        found = find_result(row)
        return write_number(found.duration_ms) if found else "–"

    def review(self, request: HttpRequest, row: ApiCall) -> dict[str, Any]:
        is_open = open_content(
            request, row.conversation, reading_log.PARAMETERS % {"entry": row.pk}
        )
        found, body = find_result(row), rebuild_request(row)
        facts = []
        if found is not None:
            names = [name for name in _RESULT_FIELDS if is_open or name not in CONTENT]
            facts = [(name.replace("_", " "), getattr(found, name)) for name in names]
            facts.append(("cost", f"{dollars(found.cost_micros)} ({found.cost_basis})"))
        is_same = (body.digest, body.size) == (row.body_digest, row.body_bytes)
        return {
            "is_closed": not is_open,
            "inspected": find_call_number(row),
            "parameters": _parameters(row, is_open=is_open),
            "facts": facts,
            "usage": format_json(found.usage) if found else "",
            "rebuilt": body,
            "may_correct": request.user.has_perm(CORRECT),
            "is_same": is_same and not body.problem,
        }

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        correct = wrap(budget_actions.correct_cost)
        return [
            path("<path:object_id>/body/", wrap(self.body), name="apicall_body"),
            path("<path:object_id>/correct/", correct, name="apicall_correct"),
            *super().get_urls(),
        ]

    def body(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Return the rebuilt request as text."""
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404("no such call")
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        if not open_content(request, row.conversation, reading_log.REQUEST % {"entry": row.pk}):
            raise PermissionDenied
        found = rebuild_request(row)
        if found.problem:
            return HttpResponse(found.problem, content_type="text/plain; charset=utf-8", status=409)
        headers = {
            "Content-Disposition": f'inline; filename="call-{row.pk}.json.txt"',
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        }
        return HttpResponse(found.body, content_type="text/plain; charset=utf-8", headers=headers)


def find_result(row: ApiCall) -> ApiResult | None:
    """Return the call's result; None while it is in doubt."""
    return getattr(row, "result", None)


def _parameters(row: ApiCall, *, is_open: bool) -> list[tuple[str, str]]:
    try:
        values = dict(json.loads(row.envelope.text))
    except DAMAGE as error:
        return [("damaged", f"{type(error).__name__}: {error}" if is_open else "")]
    shown = []
    for name, value in values.items():
        if name in CONTENT and not is_open:
            text = f"({write_number(len(str(value)))} characters)"
        else:
            is_plain = isinstance(value, str)
            text = value if is_plain else json.dumps(value, ensure_ascii=False, indent=2)
        shown.append((name, text))
    return shown
