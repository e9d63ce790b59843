"""Requests of a browser and of the relay's reader, over aiohttp, each on its own connection.

The cost of the client, because a reader must not disturb the measurement: `bench stream
--conversations 50` takes 69 ms of processor time per 1,000 deltas of the relay, and 44 ms with a
parser written for it. Per 1,000 events alone, 50 streams: 31 ms, own parser 25, httpx2 75.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp

#: Any value works if cookie and header have the same.
TOKEN = "b" * 32


@dataclass(frozen=True, slots=True)
class Answer:
    """A response; header names are lower case, `cookies` are those it sets."""

    status: int
    headers: dict[str, str]
    cookies: dict[str, str]
    text: str


def open_client(seconds: float | None = None) -> aiohttp.ClientSession:
    """Return a client that keeps no cookies and connections; `seconds` limit one request."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=seconds),
        skip_auto_headers=("Accept-Encoding", "User-Agent"),
    )


async def send_request(
    client: aiohttp.ClientSession,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | None = None,
) -> Answer:
    """Send a request and read the response; raises OSError or TimeoutError.

    Redirects are not followed.
    """
    try:
        async with client.request(
            method, url, headers=headers, data=body, allow_redirects=False
        ) as response:
            text = (await response.read()).decode(errors="replace")
    except aiohttp.ClientError as error:
        raise ConnectionError(str(error)) from error
    found = {name.lower(): value for name, value in response.headers.items()}
    cookies = {name: morsel.value for name, morsel in response.cookies.items()}
    return Answer(response.status, found, cookies, text)


async def post_form(client: aiohttp.ClientSession, url: str, session: str, **fields: str) -> int:
    """Post a form as the page's script does; return the status once the head has arrived."""
    parts = urlsplit(url)
    headers = {
        "Origin": f"{parts.scheme}://{parts.netloc}",
        "Cookie": f"sessionid={session}; csrftoken={TOKEN}",
        "X-CSRFToken": TOKEN,
        "HX-Request": "true",
    }
    async with client.post(url, data=fields, headers=headers, allow_redirects=False) as response:
        return response.status


@asynccontextmanager
async def open_stream(
    client: aiohttp.ClientSession, url: str, body: bytes, headers: Mapping[str, str]
) -> AsyncIterator[AsyncIterator[bytes]]:
    """Post a text and yield the chunks of the response body as they arrive."""
    async with client.post(url, data=body, headers=headers) as response:
        yield response.content.iter_any()
