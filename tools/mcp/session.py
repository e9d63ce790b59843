"""The protocol on one connection: the list of tools, and a call. Requests of the server are
refused.

The library's own `call_tool` would check results against the server's output schema, whose patterns
the server chooses and which could block the process; here a result is read as it is. Requests of
the server (sampling, elicitation, roots) get the library's refusals, because no callback is set.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.client import Client, ClientSession, IncomingMessage, Transport
from pydantic import TypeAdapter, ValidationError

from tools.framework.clean_text import clean_text, quote
from tools.framework.errors import IsolationError
from tools.isolation.isolated_calls import run_isolated
from tools.mcp.definitions import MOST_BYTES, Listed, list_definitions
from tools.mcp.errors import ListingError, ServerError
from tools.mcp.server import MOST_MESSAGE, Server

MOST_TOOLS, MOST_PAGES = 1_000, 50
#: Most characters of a full list of tools as JSON, and most objects in its definitions: checking
#: them takes time.
MOST_LISTED, MOST_OBJECTS = MOST_MESSAGE, 50_000
LONGEST_MESSAGE = 500
_ADAPTER: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)


def make_client(transport: Transport, changed: Callable[[], None]) -> Client:
    """Make a client; `changed` is called when the server reports a changed list."""

    async def handle(message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed()

    return Client(
        transport,
        message_handler=handle,
        client_info=types.Implementation(name="agentweb", version="0.1.0"),
        cache=None,
    )


async def read_listing(server: Server, session: ClientSession) -> tuple[Listed, ...]:
    """Read the full list of tools; raises ListingError for one that is malformed or too large."""
    found: list[dict[str, Any]] = []
    size = objects = 0
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        try:
            page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
        except ValidationError as error:
            raise ListingError("Its list of tools does not follow the protocol.") from error
        if len(found) + len(page.tools) > MOST_TOOLS:
            raise ListingError(f"It lists more than {MOST_TOOLS:,} tools.")
        for tool in page.tools:
            found.append(tool.model_dump(by_alias=True, mode="json"))
            text = json.dumps(found[-1])
            size += len(text)
            objects += text.count("{") if len(text) <= MOST_BYTES else 0
            if size > MOST_LISTED or objects > MOST_OBJECTS:
                raise ListingError("Its list of tools is too large.")
        cursor = page.next_cursor
        if cursor is None:
            return await _read_definitions(server.name, found)
    raise ListingError(f"Its list of tools has more than {MOST_PAGES} pages.")


async def _read_definitions(name: str, found: list[dict[str, Any]]) -> tuple[Listed, ...]:
    """Check a third party's definitions in a process of its own: a schema may hold any pattern."""
    try:
        listed = await run_isolated(list_definitions, name, found)
    except IsolationError as error:
        raise ListingError("Its list of tools takes too long to check.") from error
    return tuple(Listed(*each) for each in listed)


async def call_tool(
    session: ClientSession, tool: str, arguments: dict[str, Any]
) -> types.CallToolResult:
    """Call a tool; raises MCPError if the server or the connection fails, or ServerError."""
    params = types.CallToolRequestParams(name=tool, arguments=arguments)
    request = types.CallToolRequest(params=params)
    try:
        found = await session.send_request(request, _ADAPTER)
    except ValidationError as error:
        raise ServerError("The server's answer does not follow the protocol.") from error
    if isinstance(found, types.InputRequiredResult):
        raise ServerError("The server asked for something in turn, which it is not given.")
    return found


def describe_server(session: ClientSession) -> str:
    """Return the server's name for itself and its protocol version."""
    info, version = session.server_info, session.protocol_version or ""
    named = f"{info.name} {info.version}".strip() if info else "no name"
    return clean_text(f"{quote(named)}, protocol {version}")[:200]


def find_first_error(error: BaseException) -> BaseException:
    """Return the first error of nested groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def describe_error(error: BaseException) -> str:
    """Describe an error for the model and administrators, without addresses and headers."""
    match error:
        case ServerError():
            return str(error)
        case MCPError():
            return f"The server refused: {quote(error.error.message, LONGEST_MESSAGE)}."
        case TimeoutError():
            return "It did not answer in time."
        case FileNotFoundError() | PermissionError() | NotADirectoryError():
            return "The command is not there, or may not be run."
        case _ if type(error).__module__.startswith("httpx2"):
            return "It could not be reached, or broke off."
        case _ if hasattr(error, "code") and hasattr(error, "data"):
            return str(error)
        case _:
            return f"The connection failed ({type(error).__name__})."
