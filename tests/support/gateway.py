"""A server between app and emulator that has its own rules or changes what it passes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agentweb.emulator.asgi import App, Message, Receive, Scope, Send, read_body, respond

MOST = 40_000_000


@dataclass
class Gateway:
    """`rule` returns the error message of a refused request; `rewrite` changes stream bytes."""

    behind: App
    rule: Callable[[dict[str, Any]], str] = lambda body: ""
    rewrite: Callable[[bytes], bytes] = lambda raw: raw
    #: Whether the rule applies to token counting too.
    counts: bool = True
    #: Paths and bodies of the requests, and those that were refused.
    seen: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.behind(scope, receive, send)
            return
        raw = await read_body(receive, MOST) or b""
        body, path = json.loads(raw), scope["path"]
        self.seen.append((path, body))
        is_message = path == "/v1/messages"
        if (is_message or self.counts) and (words := self.rule(body)):
            if is_message:
                self.refused.append(body)
            error = {"type": "invalid_request_error", "message": words}
            said = json.dumps({"type": "error", "error": error, "request_id": "req_gateway"})
            await respond(send, 400, said.encode(), [("content-type", "application/json")])
            return

        first: list[Message] = [{"type": "http.request", "body": raw, "more_body": False}]

        async def replay() -> Message:
            # After the body the emulator waits here for the client to disconnect.
            return first.pop() if first else await receive()

        async def pass_on(message: Message) -> None:
            if message["type"] == "http.response.body" and is_message:
                message = {**message, "body": self.rewrite(message.get("body", b""))}
            await send(message)

        await self.behind(scope, replay, pass_on)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Return the bodies of the messages requests that were passed on."""
        bodies = [body for path, body in self.seen if path == "/v1/messages"]
        return [body for body in bodies if body not in self.refused]
