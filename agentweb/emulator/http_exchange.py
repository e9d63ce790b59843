"""One HTTP request and the headers, ids and errors of its response."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentweb.emulator import json_codec
from agentweb.emulator.api_accounts import Account
from agentweb.emulator.asgi import Receive, Scope, Send, respond
from agentweb.emulator.errors import ApiError, TooLarge
from agentweb.emulator.ids import make_id
from agentweb.emulator.state import Emulator, Recorded

_EDGE_PAGE = (
    b"<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body>\r\n"
    b"<center><h1>413 Request Entity Too "
    b"Large</h1></center>\r\n<hr><center>cloudflare</center>\r\n</body>\r\n</html>\r\n"
)


@dataclass
class HttpExchange:
    emulator: Emulator
    scope: Scope
    receive: Receive
    send: Send
    body: bytes = b""
    request_id: str = ""
    account: Account | None = None
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 0

    def __post_init__(self) -> None:
        self.headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in self.scope["headers"]
        }

    @property
    def path(self) -> str:
        return str(self.scope["path"])

    def identify(self, body: bytes) -> bytes:
        """Take the body and derive the request id; return the nonce for all other ids."""
        self.body = body
        nonce = self.emulator.nonce(self.path.encode(), body)
        self.request_id = make_id("req", nonce)
        return nonce

    def response_headers(self, content_type: str) -> list[tuple[str, str]]:
        headers = [("content-type", content_type), ("request-id", self.request_id)]
        if self.account is not None:
            headers.append(("anthropic-organization-id", self.account.organization_id))
            headers.append(("anthropic-workspace-id", self.account.workspace_id))
        return headers

    async def answer_json(
        self, body: json_codec.Value, *more: tuple[str, str], status: int = 200
    ) -> None:
        headers = [*self.response_headers("application/json"), *more]
        self.note(status)
        await respond(self.send, status, json_codec.encode(body), headers)

    async def refuse(self, error: ApiError) -> None:
        if isinstance(error, TooLarge):
            self.note(413)
            await respond(
                self.send,
                413,
                _EDGE_PAGE,
                [("content-type", "text/html"), ("server", "cloudflare")],
            )
            return
        retry = (
            (
                "x-should-retry",
                "true" if error.status in {408, 409, 429} or error.status >= 500 else "false",
            ),
        )
        if error.details and error.details.get("error_code") == "enforced_spend_limit_reached":
            retry = (("x-should-retry", "false"),)
        await self.answer_json(
            error.envelope(self.request_id), *error.headers, *retry, status=error.status
        )

    def note(self, status: int) -> None:
        """Record the request, if the emulator records."""
        self.status = status
        if self.emulator.record:
            method = str(self.scope["method"])
            now = self.emulator.clock.now()
            self.emulator.log.append(
                Recorded(self.request_id, method, self.path, self.headers, self.body, status, now)
            )
