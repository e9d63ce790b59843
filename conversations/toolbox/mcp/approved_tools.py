"""MCP servers for the agent and the connection pool: endpoints and approved tools."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from django.conf import settings
from django.utils.translation import gettext_noop

from conversations.conf import conf
from conversations.context.errors import ContextError
from conversations.context.tokens.images import TYPES
from conversations.context.tokens.media import identify_media
from conversations.log.settings_version import cached_by_settings_version
from conversations.models import Conversation, McpServer, McpTool
from conversations.toolbox.mcp.server_identity import identify_server
from conversations.toolbox.secrets import SecretUnreadable, open_values
from tools.framework.outside_access import WebAccess
from tools.framework.tool import Effect, Tool
from tools.framework.toolset import Supply
from tools.mcp.offer import Approved, make_tool
from tools.mcp.pool import pool
from tools.mcp.schemas import find_known_flaw
from tools.mcp.server import Address, Command, Server

Status = Literal["offered", "changed", "moved", "gone", "flawed", "rejected", "new"]
EFFECTS: dict[str, Effect] = {"read": "read", "keyed": "keyed", "write": "write"}
#: The reasons why an approved tool is missing, as texts for the model.
REASONS: dict[Status, str] = {
    "changed": gettext_noop("its definition changed; an administrator must approve it again."),
    "moved": gettext_noop("its server is another one; an administrator must approve it again."),
    "gone": gettext_noop("its server does not list it any more."),
    "flawed": gettext_noop("its definition is not one that the model takes."),
}


def tool_status(tool: McpTool, identity: str = "") -> Status:
    """Return the status of a tool; it is offered only as approved, by the same server.

    `identity`: that of its server now, where it is known. An approval from before servers were
    identified is bound at the next listing.
    """
    if not tool.listed_digest:
        return "gone"
    if tool.approved:
        if tool.listed_digest != tool.approved_digest:
            return "changed"
        if tool.approved_server not in ("", identity or identify_server(tool.server)):
            return "moved"
        return "flawed" if tool.flaw else "offered"
    if tool.flaw:
        return "flawed"
    return "rejected" if tool.listed_digest == tool.rejected_digest else "new"


def supply_approved_tools(_conversation: Conversation) -> Supply:
    """Return the offered tools of enabled servers, and why other approved ones are missing.

    One query.
    """
    rows = _list_approved()
    # The secrets of a server are opened for this, so once for all of its tools.
    server_rows = {tool.server_id: tool.server for tool in rows}
    identities = {key: identify_server(row) for key, row in server_rows.items()}
    found = [(tool, tool_status(tool, identities[tool.server_id])) for tool in rows]
    offered = [_build_tool(tool) for tool, how in found if how == "offered"]
    flawed = [_build_tool(tool) for tool, how in found if how == "flawed"]
    # A tool with a refused schema stays known, so that people see the reason.
    known = [tool for tool in flawed if find_known_flaw(tool.input_schema)]
    missing = {tool.call_name: REASONS[how] for tool, how in found if how in REASONS}
    for tool in known:
        del missing[tool.name]
    return Supply((*offered, *known), missing)


def list_pool_servers() -> tuple[list[Server], dict[str, str]]:
    """Return the enabled servers, and the reasons of those that cannot be used, by name."""
    found: list[Server] = []
    refused: dict[str, str] = {}
    for row in McpServer.objects.filter(is_enabled=True):
        if row.transport == "stdio" and not conf.mcp_commands:
            refused[row.name] = "Commands are switched off: AGENTWEB_MCP_COMMANDS."
            continue
        try:
            place = _find_endpoint(row)
        except SecretUnreadable as error:
            refused[row.name] = str(error)
            continue
        found.append(Server(row.name, place, float(row.deadline), float(conf.mcp_check_seconds)))
    return found, refused


def list_requested_checks() -> list[tuple[int, str]]:
    """Return key and name of the servers for which a check is requested."""
    rows = McpServer.objects.filter(is_enabled=True).exclude(check_asked_at=None)
    return list(rows.values_list("pk", "name"))


def detect_image_type(data: bytes) -> str:
    """Return the media type of an image that the API accepts; "" for anything else."""
    try:
        found = identify_media(data).media_type
    except ContextError:
        return ""
    return found if found in TYPES else ""


def _find_endpoint(row: McpServer) -> Command | Address:
    if row.transport == "http":
        access = WebAccess(allowed_private=frozenset(conf.mcp_private_hosts))
        return Address(row.url, tuple(sorted(open_values(row.sealed_headers).items())), access)
    folder = Path(settings.DATA_DIR) / "mcp" / row.name
    environment = tuple(sorted(open_values(row.sealed_environment).items()))
    return Command(row.command, tuple(row.arguments), environment, folder)


@cached_by_settings_version
def _list_approved() -> tuple[McpTool, ...]:
    rows = McpTool.objects.filter(server__is_enabled=True).exclude(approved="")
    return tuple(
        tool
        for tool in rows.select_related("server")
        if not tool.server.allowed_tools or tool.name in tool.server.allowed_tools
    )


def _build_tool(tool: McpTool) -> Tool:
    approved = Approved(
        server=tool.server.name,
        name=tool.name,
        call_name=tool.call_name,
        text=tool.approved,
        digest=tool.approved_digest,
        effect=EFFECTS.get(tool.effect, "write"),
        is_private=tool.server.is_private,
        deadline=float(tool.server.deadline),
    )
    return make_tool(approved, pool, detect_image_type)
