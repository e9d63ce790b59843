"""MCP servers: settings, tools, decisions and health.

A server's definitions are text of a third party in every request that has its tools. So each
definition is reviewed verbatim and approved here, and again when it changes. Commands are for
superusers, because they run with the site's own rights.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from conversations.admin.base import ReadOnly, ShownLookups, link_list, link_row, parse_key
from conversations.admin.mcp_form import ServerForm
from conversations.models import McpDecision, McpServer, McpTool, User
from conversations.runtime.mcp_servers import pool_synchronizer
from conversations.toolbox.mcp import servers
from conversations.toolbox.mcp.server_health import (
    format_definition,
    list_server_health,
    list_tool_reviews,
    measure_server,
)

PAGE = 25
#: The model field behind each of the form's own fields.
_NAMES = {
    "argument_lines": "arguments", "environment_lines": "environment", "header_lines": "headers",
    "allowed_lines": "allowed_tools",
}  # fmt: skip


@admin.register(McpServer)
class McpServerAdmin(ShownLookups):
    actions = None
    form = ServerForm
    list_display = ("name", "transport", "is_enabled", "state_display", "tool_count", "note")
    list_filter = ("is_enabled", "transport", "state")
    search_fields = ("name", "note")
    show_full_result_count = False
    readonly_fields = ("state_display", "says", "tools_link")
    fieldsets = (
        (None, {"fields": ("name", "note", "is_enabled", "state_display", "says", "tools_link")}),
        (_("Where"), {"fields": ("transport", "url", "header_lines", "command", "argument_lines",
                              "environment_lines")}),
        (_("Use"), {"fields": ("allowed_lines", "is_private", "deadline")}),
    )  # fmt: skip

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        made = super().get_form(request, obj, change, **kwargs)
        may = bool(getattr(request.user, "is_superuser", False))
        return type(made.__name__, (made,), {"is_superuser": may})

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).annotate(listed=Count("tools"))

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path("health/", view(self.health_page), name="mcp_health"),
            path("<path:object_id>/tools/", view(self.tools_page), name="mcp_tools"),
            path("<path:object_id>/decide/", view(self.decide), name="mcp_decide"),
            path("<path:object_id>/check/", view(self.check_now), name="mcp_check"),
        ]
        return [*own, *super().get_urls()]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        files = {"files": [(_("Health"), reverse("admin:mcp_health"))]}
        return super().changelist_view(request, files | (extra_context or {}))

    def save_model(self, request: HttpRequest, obj: McpServer, form: Any, change: bool) -> None:
        found = form.cleaned_data
        obj.arguments = found["argument_lines"] if obj.transport == "stdio" else []
        obj.allowed_tools = found["allowed_lines"]
        servers.save_server(
            server=obj,
            actor=_require_user(request),
            changed=[_NAMES.get(name, name) for name in form.changed_data],
            environment=found["environment_lines"] if obj.transport == "stdio" else {},
            headers=found["header_lines"] if obj.transport == "http" else {},
        )
        pool_synchronizer.wake()

    @admin.display(description=_("state"), ordering="state")
    def state_display(self, row: McpServer) -> str:
        if not row.pk:
            return "–"
        if not row.is_enabled:
            return str(_("switched off"))
        if not row.state_since:
            return row.get_state_display()
        return _("%(state)s since %(when)s") % {
            "state": row.get_state_display(),
            "when": f"{timezone.localtime(row.state_since):%Y-%m-%d %H:%M}",
        }

    @admin.display(description=_("tools"), ordering="listed")
    def tool_count(self, row: McpServer) -> int:
        return int(getattr(row, "listed", 0))

    @admin.display(description=_("tools"))
    def tools_link(self, row: McpServer) -> str:
        if not row.pk:
            return str(_("Listed once the server is enabled and connected."))
        page = reverse("admin:mcp_tools", args=[row.pk])
        shown = format_html('<a href="{}">{}</a>', page, _("Look at its tools and decide"))
        log = link_list(McpDecision, str(_("what was decided")), server__id__exact=row.pk)
        return format_html("{} · {}", shown, log)

    def health_page(self, request: HttpRequest) -> HttpResponse:
        """Show the figures of every server."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = self._context(request, str(_("Health of the MCP servers"))) | {
            "rows": list_server_health()
        }
        return TemplateResponse(request, "admin/conversations/mcpserver/health.html", context)

    def tools_page(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show a server's tools verbatim, what changed in them, and the buttons."""
        server = self._server(request, object_id)
        page = Paginator(list_tool_reviews(server), PAGE).get_page(request.GET.get("page"))
        context = self._context(request, _("Tools of %(name)s") % {"name": server.name}) | {
            "original": server,
            "row": measure_server(server),
            "page": page,
            "effects": McpTool.Effect.choices,
            "may_decide": request.user.has_perm("conversations.change_mcptool"),
        }
        return TemplateResponse(request, "admin/conversations/mcpserver/tools.html", context)

    def decide(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Approve, reject or withdraw one tool, as it was shown."""
        server = self._server(request, object_id)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not request.user.has_perm("conversations.change_mcptool"):
            raise PermissionDenied
        tool = server.tools.filter(pk=parse_key(request.POST.get("tool", ""))).first()
        if tool is None:
            raise Http404("no such tool")
        try:
            outcome = _apply_decision(request, tool)
        except servers.McpError as error:
            self.message_user(request, str(error), messages.ERROR)
        else:
            self.message_user(request, f"{tool.name}: {outcome}", messages.SUCCESS)
            pool_synchronizer.wake()
        return redirect("admin:mcp_tools", server.pk)

    def check_now(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Request that a server is connected, or its tools listed, now."""
        server = self._server(request, object_id)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_change_permission(request, server):
            raise PermissionDenied
        servers.request_check(server=server)
        pool_synchronizer.wake()
        told = _("%(name)s is being looked at.") % {"name": server.name}
        self.message_user(request, told, messages.SUCCESS)
        is_of_tools = request.POST.get("from") == "tools"
        return (
            redirect("admin:mcp_tools", server.pk) if is_of_tools else redirect("admin:mcp_health")
        )

    def _context(self, request: HttpRequest, title: str) -> dict[str, Any]:
        may = self.has_change_permission(request)
        shared = self.admin_site.each_context(request)
        return shared | {"title": title, "opts": self.opts, "may_check": may, "media": self.media}

    def _server(self, request: HttpRequest, object_id: str) -> McpServer:
        server: McpServer | None = self.get_object(request, object_id)
        if server is None:
            raise Http404("no such server")
        if not self.has_view_permission(request, server):
            raise PermissionDenied
        return server


@admin.register(McpDecision)
class McpDecisionAdmin(ReadOnly):
    heavy = ("definition",)
    list_display = ("created_at", "place", "tool", "kind", "actor", "note")
    list_filter = ("kind", "server", "created_at")
    list_select_related = ("server", "actor")
    date_hierarchy = "created_at"
    ordering = ("-pk",)
    search_fields = ("tool", "server__name", "actor__username")
    fields = ("created_at", "place", "tool", "kind", "actor", "note", "digest", "shown")

    @admin.display(description=_("server"), ordering="server")
    def place(self, row: McpDecision) -> str:
        return link_row(row.server)

    @admin.display(description=_("definition"))
    def shown(self, row: McpDecision) -> str:
        text = format_definition(row.definition)
        return format_html('<pre class="record" dir="auto" tabindex="0">{}</pre>', text or "–")


def _apply_decision(request: HttpRequest, tool: McpTool) -> str:
    """Apply the decision of the pressed button; raises McpError."""
    actor, digest = _require_user(request), request.POST.get("digest", "")
    match request.POST.get("act"):
        case "approve":
            effect = request.POST.get("effect", "")
            servers.approve_tool(tool_id=tool.pk, digest=digest, effect=effect, actor=actor)
            return str(_("approved; chats have it from their next turn on."))
        case "reject":
            servers.reject_tool(tool_id=tool.pk, digest=digest, actor=actor)
            return str(_("rejected."))
        case "withdraw":
            servers.withdraw_tool(tool_id=tool.pk, actor=actor)
            return str(_("taken back."))
    raise servers.McpError(_("Say what to do."))


def _require_user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101 - it is the admin
    return request.user
