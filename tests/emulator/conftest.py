"""Fixtures of the emulator, called in this process without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from agentweb.emulator import server
from agentweb.emulator.app import EmulatorApp, create_app
from agentweb.emulator.clock import VirtualClock

HEADERS = {"x-api-key": "sk-test", "anthropic-version": "2023-06-01"}


@dataclass(frozen=True)
class Answered:
    status: int
    headers: dict[str, str]
    body: bytes
    #: The app has sent its last body message.
    finished: bool

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        return str(self.json["error"]["message"])

    @property
    def events(self) -> list[tuple[str, Any]]:
        found = []
        for block in self.body.decode().split("\n\n"):
            if block:
                name, data = block.split("\n", 1)
                found.append(
                    (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
                )
        return found


class Asker:
    """Sends requests to one app."""

    def __init__(self, app: EmulatorApp) -> None:
        self.app = app
        self.emulator = app.emulator

    def __call__(
        self,
        body: Any = None,
        *,
        path: str = "/v1/messages",
        method: str = "POST",
        query: str = "",
        **headers: str | None,
    ) -> Answered:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return asyncio.run(post(self.app, body, path=path, method=method, query=query, **named))

    def say(self, text: str, **fields: Any) -> Answered:
        return self(request(text, **fields))


async def post(
    app: EmulatorApp,
    body: Any = None,
    *,
    path: str = "/v1/messages",
    method: str = "POST",
    query: str = "",
    **headers: str | None,
) -> Answered:
    """Send one request; a header that is None is omitted."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode() if body else b""
    pairs = [(k.encode(), v.encode()) for k, v in (HEADERS | headers).items() if v is not None]
    scope = {"type": "http", "method": method, "path": path, "headers": pairs}
    return await _run(app, scope | {"query_string": query.encode()}, raw)


async def _run(app: EmulatorApp, scope: dict[str, Any], raw: bytes) -> Answered:
    sent: list[dict[str, Any]] = []
    asked = [{"type": "http.request", "body": raw, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if asked:
            return asked.pop()
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = next((m for m in sent if m["type"] == "http.response.start"), None)
    bodies = [m for m in sent if m["type"] == "http.response.body"]
    return Answered(
        start["status"] if start else 0,
        {k.decode(): v.decode() for k, v in start["headers"]} if start else {},
        b"".join(m.get("body", b"") for m in bodies),
        bool(bodies) and not bodies[-1].get("more_body", False),
    )


def request(text: str = "Hello", **fields: Any) -> dict[str, Any]:
    """Return a minimal valid body."""
    base = {"model": "claude-sonnet-5-5", "max_tokens": 2_000}
    return base | {"messages": [{"role": "user", "content": text}]} | fields


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def ask(clock: VirtualClock) -> Asker:
    return Asker(create_app(clock=clock, record=True))


@pytest.fixture
def body() -> Any:
    """Return the function that makes a minimal valid body."""
    return request


@pytest.fixture(scope="module")
def served() -> Iterator[server.EmulatorServer]:
    with server.start(pace=0, record=True) as running:
        yield running
