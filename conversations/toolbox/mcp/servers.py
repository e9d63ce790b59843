"""Writes about MCP servers: their settings, the tools they list, the decisions about those.

Only an administrator's decision changes the tools that a model is offered: `approve_tool` takes the
digest of the shown definition, so a definition listed meanwhile is not approved with it. When a
server changes a definition, that is recorded once and the tool is withheld until there is a
decision.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from django.utils import timezone, translation
from django.utils.translation import gettext as _

from conversations.db import transact
from conversations.log.chain import append_row, lock_site_chain
from conversations.models import McpDecision, McpServer, McpTool, User
from conversations.toolbox.mcp.server_identity import identify_server
from conversations.toolbox.secrets import seal
from tools.mcp.connection import ServerStatus
from tools.mcp.definitions import Listed

LONGEST_ERROR = 4_000
Kind = McpDecision.Kind


class McpError(Exception):
    """The decision is refused; the text says why."""

    code = "mcp_decision"


def save_server(
    *,
    server: McpServer,
    actor: User,
    changed: Collection[str],
    environment: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Store a server's settings; secrets that are None stay as they are.

    When its identity changes, it is another server: its approvals are withdrawn.
    """
    if environment is not None:
        server.sealed_environment = seal(json.dumps(environment)) if environment else ""
    if headers is not None:
        server.sealed_headers = seal(json.dumps(headers)) if headers else ""
    _save(server, actor, changed, server.pk, server._state.adding)


@transact
def _save(
    server: McpServer, actor: User, changed: Collection[str], key: int | None, is_new: bool
) -> None:
    # A save that was taken back leaves the object as if it were stored.
    server.pk, server._state.adding = key, is_new
    before = None if is_new else McpServer.objects.select_for_update().get(pk=server.pk)
    server.save()
    kind = Kind.ADDED if is_new else Kind.CHANGED
    is_other = before is not None and identify_server(before) != identify_server(server)
    # Lock order everywhere: the server before the log of decisions.
    approved = server.tools.select_for_update().exclude(approved="") if is_other else ()
    tools = list(approved)
    if changed or is_new:
        _decide(server, kind, actor, note=", ".join(changed)[:300])
    for tool in tools:
        _withdraw(tool, actor, "the server is another one now")


@transact
def approve_tool(*, tool_id: int, digest: str, effect: str, actor: User) -> McpTool:
    """Offer a tool to the model as it was shown to the administrator; raises McpError."""
    tool = McpTool.objects.select_for_update(of=("self",)).select_related("server").get(pk=tool_id)
    if not digest or tool.listed_digest != digest:
        raise McpError(_("The definition has changed since it was shown. Look at it again."))
    if tool.flaw:
        raise McpError(_("It cannot be approved: %(why)s") % {"why": tool.flaw})
    if effect not in McpTool.Effect.values:
        raise McpError(_("Say what the tool does."))
    tool.approved, tool.approved_digest, tool.effect = tool.listed, digest, effect
    tool.rejected_digest, tool.approved_server = "", identify_server(tool.server)
    tool.save(
        update_fields=[
            "approved",
            "approved_digest",
            "approved_server",
            "effect",
            "rejected_digest",
        ]
    )
    with translation.override(None):  # the record is in one language
        note = str(tool.get_effect_display())
    _decide(tool.server, Kind.APPROVED, actor, tool.name, note, tool.approved, digest)
    return tool


@transact
def reject_tool(*, tool_id: int, digest: str, actor: User) -> McpTool:
    """Withhold a tool as it is listed now, even if it was approved; raises McpError."""
    tool = McpTool.objects.select_for_update(of=("self",)).select_related("server").get(pk=tool_id)
    if not digest or tool.listed_digest != digest:
        raise McpError(_("The definition has changed since it was shown. Look at it again."))
    if tool.approved:
        _withdraw(tool, actor)
    tool.rejected_digest = digest
    tool.save(update_fields=["rejected_digest"])
    _decide(tool.server, Kind.REJECTED, actor, tool.name, "", tool.listed, digest)
    return tool


@transact
def withdraw_tool(*, tool_id: int, actor: User) -> McpTool:
    """Withdraw the approval of a tool; raises McpError."""
    tool = McpTool.objects.select_for_update(of=("self",)).select_related("server").get(pk=tool_id)
    if not tool.approved:
        raise McpError(_("It is not approved."))
    _withdraw(tool, actor)
    return tool


def request_check(*, server: McpServer) -> None:
    """Request that a connected process checks the server soon."""
    McpServer.objects.filter(pk=server.pk).update(check_asked_at=timezone.now())


def clear_check_request(*, server_id: int) -> None:
    McpServer.objects.filter(pk=server_id).update(check_asked_at=None)


def record_status(*, name: str, status: ServerStatus) -> None:
    """Store the connection status of a server; `state_since` moves only with the state."""
    now = timezone.now()
    rows = McpServer.objects.filter(name=name)
    rows.exclude(state=status.state).update(state_since=now)
    rows.update(state=status.state)
    if status.state == "connected":
        rows.update(last_seen_at=now, says=status.says)
    if status.error:
        rows.update(last_error=status.error[:LONGEST_ERROR], last_error_at=now)


@transact
def record_listing(*, name: str, tools: Collection[Listed]) -> None:
    """Store the tools a server lists; approvals are not changed."""
    server = McpServer.objects.select_for_update().filter(name=name).first()
    if server is None:
        return
    allowed = set(server.allowed_tools)
    present = {each.name: each for each in tools if not allowed or each.name in allowed}
    unbound = server.tools.exclude(approved="").filter(approved_server="")
    # An update of no row would be a change of settings too.
    if unbound.exists():
        unbound.update(approved_server=identify_server(server))
    known = {tool.name: tool for tool in server.tools.select_for_update()}
    for each in present.values():
        _record(server, known.get(each.name), each)
    for tool in known.values():
        if tool.name not in present and tool.listed_digest:
            tool.listed = tool.listed_digest = tool.flaw = ""
            tool.save(update_fields=["listed", "listed_digest", "flaw"])
            if tool.approved:
                _decide(server, Kind.GONE, None, tool.name)


def _record(server: McpServer, tool: McpTool | None, each: Listed) -> None:
    now = timezone.now()
    if tool is None:
        tool = McpTool(server=server, name=each.name)
    elif tool.listed_digest == each.digest and tool.flaw == each.flaw:
        McpTool.objects.filter(pk=tool.pk).update(listed_at=now)
        return
    tool.call_name, tool.listed, tool.listed_digest = each.call_name, each.text, each.digest
    tool.flaw, tool.listed_at = each.flaw, now
    tool.save()
    if tool.approved and each.digest != tool.approved_digest:
        _decide(server, Kind.DIFFERS, None, tool.name, "", each.text, each.digest)


def _withdraw(tool: McpTool, actor: User, note: str = "") -> None:
    _decide(
        tool.server, Kind.WITHDRAWN, actor, tool.name, note, tool.approved, tool.approved_digest
    )
    tool.approved = tool.approved_digest = tool.approved_server = ""
    tool.effect = McpTool.Effect.WRITE
    tool.save(update_fields=["approved", "approved_digest", "approved_server", "effect"])


def _decide(
    server: McpServer,
    kind: McpDecision.Kind,
    actor: User | None,
    tool: str = "",
    note: str = "",
    definition: str = "",
    digest: str = "",
) -> None:
    row = McpDecision(
        server=server,
        tool=tool,
        kind=kind,
        actor=actor,
        note=note,
        definition=definition,
        digest=digest,
    )
    append_row(row, lock_site_chain())
