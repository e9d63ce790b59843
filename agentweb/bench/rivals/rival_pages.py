"""What the measuring client does in place of the pages of the relay and of the rivals.

An open page keeps its socket over all turns, as a person's does.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Mapping
from typing import Any, Protocol

from aiohttp import ClientSession

from agentweb.bench.readers import Reader, read_response
from agentweb.bench.shown_page import STAMP
from agentweb.bench.websocket_client import Socket, connect

RELAY, LITELLM, CHAINLIT = "relay", "litellm", "chainlit"
#: The key that the proxy asks of its clients.
PROXY_KEY = "sk-bench"
#: Messages of Engine.IO and Socket.IO version 4: the server's ping, a pong, connect, an event.
_PING, _PONG, _CONNECT, _EVENT = "2", "3", "40", "42"
_VERSION = {"Anthropic-Version": "2023-06-01"}
#: Events with text of an answer: the first has its beginning.
_TEXT = ('42["stream_start"', '42["stream_token"')
_SOCKET = "/ws/socket.io/?EIO=4&transport=websocket"


class Page(Protocol):
    """An open page of a server that is measured beside the product."""

    async def open(self) -> None:
        """Do what a page does before its person writes."""

    async def ask(self, text: str, reader: Reader) -> None:
        """Send a prompt and read its answer to the end."""


class PostedPage:
    """A page whose answer is the response to its request: the relay's, the proxy's."""

    def __init__(self, client: ClientSession, url: str, model: str = "") -> None:
        self._client, self._model = client, model
        self._address = url + ("/v1/messages" if model else "/ask")

    async def open(self) -> None:
        return

    async def ask(self, text: str, reader: Reader) -> None:
        body, headers = text, {}
        if self._model:
            body = json.dumps(_make_request(self._model, text))
            headers = {"X-API-Key": PROXY_KEY, "Content-Type": "application/json"} | _VERSION
        await read_response(self._client, self._address, body.encode(), headers, reader)


class ChainlitPage:
    """A page of Chainlit over Socket.IO, whose answer ends with the event `task_end`."""

    def __init__(self, url: str) -> None:
        self._address = url.replace("http", "ws", 1) + _SOCKET
        self._socket: Socket
        self._reader: Reader | None = None
        self._has_ended = asyncio.Event()

    async def open(self) -> None:
        self._socket = await connect(self._address, take=self._take)
        about = {"sessionId": str(uuid.uuid4()), "clientType": "webapp", "threadId": ""}
        self._socket.send(_CONNECT + json.dumps(about))
        self._emit("connection_successful")
        await self._has_ended.wait()

    async def ask(self, text: str, reader: Reader) -> None:
        self._reader = reader
        self._has_ended.clear()
        message = {
            "id": str(uuid.uuid4()), "threadId": "", "name": "User", "type": "user_message",
            "output": text, "createdAt": "2026-01-01T00:00:00Z",
        }  # fmt: skip
        self._emit("client_message", {"message": message, "fileReferences": []})
        await self._has_ended.wait()

    def _emit(self, *event: object) -> None:
        self._socket.send(_EVENT + json.dumps(event))

    def _take(self, message: str) -> None:
        if message == _PING:
            self._socket.send(_PONG)
        elif message.startswith(_TEXT) and self._reader is not None:
            self._reader.count(STAMP.findall(message))
        elif message.startswith(f'{_EVENT}["task_end"'):
            self._has_ended.set()


def make_page(name: str, client: ClientSession, url: str, model: str) -> Page:
    """Return a page of the relay or of a rival."""
    if name == CHAINLIT:
        return ChainlitPage(url)
    return PostedPage(client, url, model if name == LITELLM else "")


def _make_request(model: str, text: str) -> Mapping[str, Any]:
    messages = [{"role": "user", "content": text}]
    return {"model": model, "max_tokens": 16_000, "stream": True, "messages": messages}
