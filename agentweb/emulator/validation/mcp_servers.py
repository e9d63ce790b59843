"""Every MCP server of a request is named by a toolset among its tools."""

from __future__ import annotations

from agentweb.emulator import json_codec
from agentweb.emulator.errors import Invalid

#: The beta with toolsets, which select the offered tools of a server.
_TOOLSETS_BETA = "mcp-client-2025-11-20"


def check_mcp_servers(body: json_codec.Object, betas: frozenset[str]) -> None:
    if _TOOLSETS_BETA not in betas:
        return
    named = {tool.get("mcp_server_name") for tool in body.get("tools") or ()}
    for server in body.get("mcp_servers") or ():
        if server.get("name") not in named:
            raise Invalid(
                f"MCP server '{server.get('name')}' is defined but not referenced by any"
                " mcp_toolset in tools"
            )
