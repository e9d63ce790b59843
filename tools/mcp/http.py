"""Streamable HTTP through the guarded transport: the same checks as for every page that is fetched.

The GET stream, by which a server could push messages, is not opened, so what it sends is always the
answer to a call, bounded by its deadline and size. A redirect is only followed within the same
origin, and checked like any request.
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


class _WithoutPush(GuardedTransport):
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(405, request=request)
        return await super().handle_async_request(request)


@asynccontextmanager
async def _open_streams(endpoint: Address, patience: float) -> AsyncGenerator[object]:
    access = replace(endpoint.access, max_bytes=MOST_MESSAGE)
    client = httpx2.AsyncClient(
        transport=_WithoutPush(access),
        headers=dict(endpoint.headers),
        timeout=httpx2.Timeout(patience),
        trust_env=False,
        follow_redirects=False,
    )
    async with (
        client,
        streamable_http_client(
            endpoint.url, http_client=client, max_sse_event_size=MOST_MESSAGE
        ) as streams,
    ):
        yield streams


def connect_http(endpoint: Address, patience: float) -> Transport:
    """Return the client's transport; `patience` is the seconds of silence that end a connection."""
    return _open_streams(endpoint, patience)  # type: ignore[return-value]
