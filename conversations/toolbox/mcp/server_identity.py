"""What makes an MCP server the one whose tools were approved: its place and how it is started.

The program, its arguments and the names in its environment decide what a command does; the URL and
the names of its headers decide what answers there. Values of environment and headers are secrets
that are replaced in the normal course of things, so they are not part of the identity.
"""

from __future__ import annotations

from conversations.context.view import wire
from conversations.models import McpServer
from conversations.toolbox.secrets import SecretUnreadable, open_values


def identify_server(server: McpServer) -> str:
    """Return the digest of a server's identity."""
    secrets = (server.sealed_environment, server.sealed_headers)
    place = [server.transport, server.command, list(server.arguments), server.url]
    return wire.digest(wire.encode([*place, *map(_list_names, secrets)]))


def _list_names(sealed: str) -> list[str]:
    try:
        return sorted(open_values(sealed))
    except SecretUnreadable:
        # Only entering the values anew makes their names known again.
        return [sealed]
