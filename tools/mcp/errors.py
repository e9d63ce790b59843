"""Errors of a server, worded for the model and for administrators.

They name the server and what happened, never an address, a header or what it wrote to its log.
"""

from __future__ import annotations

from tools.framework.errors import ToolError


class ServerError(ToolError):
    """The server cannot be used, or broke a rule; the call may or may not have been made."""

    code = "mcp_failed"


class ServerOffError(ServerError):
    code = "mcp_off"


class DefinitionChangedError(ServerError):
    """The listed definition is not the one that an administrator approved."""

    code = "mcp_changed"


class ListingError(ServerError):
    """The list of tools cannot be read."""

    code = "mcp_listing"
