"""Conversations: facts, links, and, with the permission to read content, the transcript as text.

The title counts as content, because it is made from the messages.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from conversations.accounts import reading_log
from conversations.admin.base import (
    DirectOwnerFilter,
    GroupFilter,
    ModelFilter,
    ReadOnly,
    link_list,
    link_row,
    parse_key,
    short_id,
)
from conversations.admin.content_access import may_read, open_content
from conversations.admin.csv_export import SentAsFiles
from conversations.admin.review_figures import (
    BY_COST,
    BY_FREED,
    BY_RECALLS,
    BY_REDUCTIONS,
    BY_REJECTED,
    ReviewedConversations,
)
from conversations.admin.review_sheets import write_conversations
from conversations.context.policy.policy import PRESETS
from conversations.inspector.review import PAGE, list_messages, list_unsent
from conversations.models import (
    ApiCall,
    Attachment,
    Conversation,
    ToolCall,
    Transformation,
    Turn,
)
from conversations.reductions.words import name_preset
from conversations.rendering.numbers import dollars, write_number
from conversations.web.policy_lab import build_context, start_trial


class OwnersGroupFilter(GroupFilter):
    path = "owner__groups"


class ChosenPolicyFilter(admin.SimpleListFilter):
    """By the preset that was chosen for the chat itself."""

    title = _("policy")
    parameter_name = "policy"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        named: list[tuple[str, Any]] = [(name, name_preset(name)) for name in PRESETS]
        return [("everywhere", _("as everywhere")), *named]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case None:
                return rows
            case "everywhere":
                return rows.exclude(policy__has_key="preset")
            case name:
                return rows.filter(policy__preset=name)


@admin.register(Conversation)
class ConversationAdmin(SentAsFiles, ReadOnly):
    sheet, word = staticmethod(write_conversations), "conversations"
    heavy = ("instructions", "policy")
    list_display = (
        "updated_at", "place", "person", "model", "spent", "tokens_freed", "reductions", "rejected",
        "recalls", "created_at",
    )  # fmt: skip
    list_display_links = ("updated_at",)
    list_filter = (
        DirectOwnerFilter, OwnersGroupFilter, ModelFilter, ChosenPolicyFilter, "created_at",
        "updated_at",
    )  # fmt: skip
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

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ReviewedConversations]:
        return ReviewedConversations

    @admin.display(description=_("chat"), ordering="public_id")
    def place(self, row: Any) -> str:
        """Link to the inspector, or to the figures for those who may not read the content."""
        if not row.is_readable:
            return link_row(row, short_id(row))
        address = reverse("review_inspect", args=[row.public_id])
        return format_html('<a href="{}">{}</a>', address, short_id(row))

    @admin.display(description=_("cost"), ordering=BY_COST)
    def spent(self, row: Any) -> str:
        return dollars(row.figures.cost)

    @admin.display(description=_("tokens freed"), ordering=BY_FREED)
    def tokens_freed(self, row: Any) -> str:
        """Link to what was taken from the model, the largest first."""
        where = {"conversation__id__exact": row.pk, "outcome__exact": "applied", "o": "-5"}
        return link_list(Transformation, write_number(row.figures.freed), **where)

    @admin.display(description=_("reductions"), ordering=BY_REDUCTIONS)
    def reductions(self, row: Any) -> str:
        where = {"conversation__id__exact": row.pk, "outcome__exact": "applied"}
        return link_list(Transformation, write_number(row.figures.reductions), **where)

    @admin.display(description=_("rejected summaries"), ordering=BY_REJECTED)
    def rejected(self, row: Any) -> str:
        where = {"conversation__id__exact": row.pk, "outcome__exact": "rejected"}
        return link_list(Transformation, write_number(row.figures.rejected), **where)

    @admin.display(description=_("needed again"), ordering=BY_RECALLS)
    def recalls(self, row: Any) -> str:
        """Link to the calls that read again what was taken away."""
        where = {"turn__conversation__id__exact": row.pk, "tool": "recall"}
        return link_list(ToolCall, write_number(row.figures.recalls), **where)

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
        return dollars(row.cost_micros)

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
        after = parse_key(request.GET.get("after", ""))
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
