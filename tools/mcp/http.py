"""Streamable HTTP through the guarded transport: the same checks as for every page that is fetched.

Nothing is opened that the server could push through when nobody asked (the GET stream), so what it
sends is always the answer to a call, bounded by the deadline and the size of one. A redirect leads
nowhere but within the same origin, and is aimed anew like any request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx2
from mcp.client import Transport
from mcp.client.streamable_http import streamable_http_client

from tools.http.transport import GuardedTransport
from tools.mcp.server import MOST_MESSAGE, Address


class _NothingPushed(GuardedTransport):
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(405, request=request)
        return await super().handle_async_request(request)


@asynccontextmanager
async def _open_streams(place: Address, patience: float) -> AsyncGenerator[object]:
    access = replace(place.access, max_bytes=MOST_MESSAGE)
    client = httpx2.AsyncClient(
        transport=_NothingPushed(access),
        headers=dict(place.headers),
        timeout=httpx2.Timeout(patience),
        trust_env=False,
        follow_redirects=False,
    )
    async with (
        client,
        streamable_http_client(
            place.url, http_client=client, max_sse_event_size=MOST_MESSAGE
        ) as streams,
    ):
        yield streams


def connect_http(place: Address, patience: float) -> Transport:
    """Give the client's transport; `patience` is how many seconds of silence end a connection."""
    return _open_streams(place, patience)  # type: ignore[return-value]
