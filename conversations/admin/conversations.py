"""Conversations: facts, links, and, with the permission to read content, the transcript as text.

The title counts as content, because it is made from the messages.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import F, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext_lazy as _

from conversations.accounts import reading_log
from conversations.admin.base import (
    DirectOwnerFilter,
    ModelFilter,
    ReadOnly,
    link_list,
    link_row,
    short_id,
)
from conversations.admin.content_access import may_read, open_content
from conversations.inspector.review import PAGE, list_messages, list_unsent
from conversations.models import (
    ApiCall,
    ApiResult,
    Attachment,
    Conversation,
    ToolCall,
    Transformation,
    Turn,
)
from conversations.rendering.numbers import dollars, write_number
from conversations.web.policy_lab import build_context, start_trial


@admin.register(Conversation)
class ConversationAdmin(ReadOnly):
    heavy = ("instructions", "policy")
    list_display = ("updated_at", "place", "person", "model", "head", "tokens_freed", "created_at")
    list_display_links = ("updated_at", "place")
    list_filter = (DirectOwnerFilter, ModelFilter, "created_at", "updated_at")
    list_select_related = ("owner",)
    date_hierarchy = "created_at"
    ordering = ("-updated_at",)
    search_fields = ("public_id", "owner__username", "owner__email")
    fieldsets = (
        (None, {"fields": ("person", "model", "public_id")}),
        (
            _("Its record"),
            {"fields": ("turns_link", "calls", "changes", "tools", "files", "waiting", "cost")},
        ),
        (_("Log and chain"), {"fields": ("head", "tip", "links", "chain")}),
        (_("Settings"), {"fields": ("policy",)}),
        (
            _("Times"),
            {
                "fields": (
                    "created_at",
                    "updated_at",
                    "pinned_at",
                    "archived_at",
                    "deleted_at",
                    "erase_at",
                    "removed_by_rule",
                )
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        applied = Transformation.objects.filter(conversation=OuterRef("pk"), outcome="applied")
        freed = (
            applied.order_by()
            .values("conversation")
            .annotate(sum=Sum(F("tokens_before") - F("tokens_after")))
        )
        freed_in_all = Coalesce(Subquery(freed.values("sum")), 0)
        rows: QuerySet[Any] = super().get_queryset(request).annotate(freed=freed_in_all)
        return rows

    @admin.display(description=_("tokens freed"), ordering="freed")
    def tokens_freed(self, row: Any) -> str:
        """Link to what was taken from the model, the largest first."""
        where = {"conversation__id__exact": row.pk, "outcome__exact": "applied", "o": "-5"}
        return link_list(Transformation, write_number(row.freed), **where)

    @admin.display(description=_("conversation"), ordering="public_id")
    def place(self, row: Conversation) -> str:
        return short_id(row)

    @admin.display(description=_("user"), ordering="owner__username")
    def person(self, row: Conversation) -> str:
        return link_row(row.owner)

    @admin.display(description=_("turns"))
    def turns_link(self, row: Conversation) -> str:
        return link_list(Turn, f"{row.turns.count()}", conversation__id__exact=row.pk)

    @admin.display(description=_("calls"))
    def calls(self, row: Conversation) -> str:
        return link_list(ApiCall, f"{row.calls.count()}", conversation__id__exact=row.pk)

    @admin.display(description=_("transformations"))
    def changes(self, row: Conversation) -> str:
        count = row.transformations.count()
        return link_list(Transformation, f"{count}", conversation__id__exact=row.pk)

    @admin.display(description=_("tool calls"))
    def tools(self, row: Conversation) -> str:
        count = ToolCall.objects.filter(turn__conversation=row).count()
        return link_list(ToolCall, f"{count}", turn__conversation__id__exact=row.pk)

    @admin.display(description=_("attachments"))
    def files(self, row: Conversation) -> str:
        return link_list(Attachment, f"{row.attachments.count()}", conversation__id__exact=row.pk)

    @admin.display(description=_("messages waiting to be sent"))
    def waiting(self, row: Conversation) -> int:
        return row.queued_prompts.count()

    @admin.display(description=_("cost"))
    def cost(self, row: Conversation) -> str:
        spent = ApiResult.objects.filter(call__conversation=row).aggregate(sum=Sum("cost_micros"))
        return dollars(int(spent["sum"] or 0))

    def review(self, request: HttpRequest, row: Conversation) -> dict[str, Any]:
        return {"is_closed": not may_read(request, row)}

    def get_urls(self) -> list[URLPattern]:
        return [
            path(
                f"<path:object_id>/{name}/",
                self.admin_site.admin_view(view),
                name=f"conversation_{name}",
            )
            for name, view in (("read", self.read), ("lab", self.lab))
        ] + super().get_urls()

    def lab(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show what another policy would have done; computing it reads the messages."""
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404("no such conversation")
        if not (self.has_view_permission(request, row) and may_read(request, row)):
            raise PermissionDenied
        problem, reader = "", int(request.user.pk or 0)
        if request.method == "POST":
            open_content(request, row, reading_log.TRIAL)
            problem = start_trial(reader, row)
            if not problem:
                return redirect("admin:conversation_lab", row.pk)
        context = self.admin_site.each_context(request) | build_context(reader, row)
        context |= {
            "title": _("What would another policy have done?"),
            "opts": self.opts, "media": self.media, "original": row, "problem": problem,
            "is_review": True,
        }  # fmt: skip
        return TemplateResponse(
            request,
            "admin/conversations/conversation/lab.html",
            context,
            status=409 if problem else 200,
        )

    def read(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show a page of the log's messages as text."""
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404("no such conversation")
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        cursor = request.GET.get("after", "")
        after = int(cursor) if cursor.isdecimal() and len(cursor) < 19 else 0
        if not open_content(request, row, reading_log.MESSAGES % {"entry": after + 1}):
            raise PermissionDenied
        shown = list_messages(row, after)
        context = self.admin_site.each_context(request) | {
            "title": "Messages",
            "opts": self.opts,
            "media": self.media,
            "original": row,
            "shown": shown,
            "unsent": () if after else list_unsent(row),
            "next": shown[-1].seq if len(shown) == PAGE else None,
        }
        return TemplateResponse(request, "admin/conversations/conversation/read.html", context)
