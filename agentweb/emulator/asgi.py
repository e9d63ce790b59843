"""ASGI types and helpers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

Headers: TypeAlias = Iterable[tuple[str, str]]


async def respond(send: Send, status: int, body: bytes, headers: Headers) -> None:
    """Send a complete response."""
    await start(send, status, [*headers, ("content-length", str(len(body)))])
    await send({"type": "http.response.body", "body": body})


async def start(send: Send, status: int, headers: Headers) -> None:
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": status, "headers": encoded})


class Disconnected(Exception):
    """The client disconnected before its request was read."""


async def read_body(receive: Receive, limit: int) -> bytes | None:
    """Read the full request body; None when it is larger than the limit."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            return None
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)
