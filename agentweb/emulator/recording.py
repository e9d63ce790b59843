"""Records every exchange as a line of JSON, and replays recorded exchanges.

A line holds `method, url, version, beta, request, status, ctype, response`: the request as JSON,
the response as the text that went over the wire, a stream as its events. Headers with keys are not
stored. Any file of such lines can be replayed. A request is recognized by its method, path and JSON
value; one that was recorded several times gets its responses in order, then the last one again.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentweb.emulator import json_codec
from agentweb.emulator.asgi import App, Message, Receive, Scope, Send, respond
from agentweb.emulator.errors import Invalid

_MAX_BODY = 32 * 1_048_576


class RecordingError(Exception):
    """A file that cannot be recorded to or replayed; the text says why."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    content_type: str
    text: str


class Recorder:
    """An ASGI app that writes what passes through it to a file, one line for each exchange."""

    def __init__(self, app: App, path: Path) -> None:
        self._app = app
        try:
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise RecordingError(f"{path} cannot be written: {error.strerror}") from error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _is_exchange(scope):
            await self._app(scope, receive, send)
            return
        request_body, response_body = bytearray(), bytearray()
        head: Message = {}

        async def record_receive() -> Message:
            message = await receive()
            request_body.extend(message.get("body", b""))
            return message

        async def record_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                head.update(message)
            response_body.extend(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, record_receive, record_send)
        finally:
            # A stream that was cut is recorded up to the cut.
            if head:
                self._write(scope, bytes(request_body), head, bytes(response_body))

    def _write(
        self, scope: Scope, request_body: bytes, head: Message, response_body: bytes
    ) -> None:
        headers = _headers(scope["headers"])
        line = {
            "method": scope["method"],
            "url": _target(scope),
            "version": headers.get("anthropic-version", ""),
            "beta": headers.get("anthropic-beta", ""),
            "request": _value(request_body),
            "status": head["status"],
            "ctype": _headers(head["headers"]).get("content-type", ""),
            "response": response_body.decode(errors="replace"),
        }
        self._file.write(json_codec.encode(line).decode() + "\n")
        self._file.flush()


class Replayer:
    """An ASGI app that replays recorded responses; other requests are passed on, or refused."""

    def __init__(self, app: App, path: Path, *, is_strict: bool = False) -> None:
        self._app, self._path, self._is_strict = app, path, is_strict
        self._responses = _read_responses(path)
        self._replayed: dict[bytes, int] = defaultdict(int)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _is_exchange(scope):
            await self._app(scope, receive, send)
            return
        messages: list[Message] = []
        while not messages or messages[-1].get("more_body"):
            messages.append(await receive())
            if sum(len(message.get("body", b"")) for message in messages) > _MAX_BODY:
                break
        body = b"".join(message.get("body", b"") for message in messages)
        key = _key(str(scope["method"]), str(scope["path"]), _value(body))
        if found := self._responses.get(key):
            response = found[min(self._replayed[key], len(found) - 1)]
            self._replayed[key] += 1
            headers = [("content-type", response.content_type)]
            await respond(send, response.status, response.text.encode(), headers)
        elif self._is_strict:
            error = Invalid(f"{scope['method']} {scope['path']}: this request is not recorded")
            refusal = json_codec.encode(error.envelope("req_not_recorded"))
            await respond(send, error.status, refusal, [("content-type", "application/json")])
        else:
            await self._app(scope, _give_again(messages, receive), send)


def _give_again(messages: Sequence[Message], receive: Receive) -> Receive:
    waiting = list(messages)

    async def give() -> Message:
        return waiting.pop(0) if waiting else await receive()

    return give


def _read_responses(path: Path) -> dict[bytes, list[Response]]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}") from error
    found: dict[bytes, list[Response]] = defaultdict(list)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json_codec.decode(line)
            path_of = _find_path(str(row["url"]))
            kind = row.get("ctype") or _guess_type(str(row["response"]))
            response = Response(int(row["status"]), kind, str(row["response"]))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise RecordingError(f"{path}, line {number}: no recorded exchange: {error}") from error
        found[_key(str(row.get("method", "POST")), path_of, row.get("request"))].append(response)
    return dict(found)


def _find_path(url: str) -> str:
    _, scheme, rest = url.partition("://")
    path = rest[rest.find("/") :] if scheme else url
    return path.partition("?")[0]


def _guess_type(text: str) -> str:
    return "text/event-stream" if text.startswith(("event:", "data:")) else "application/json"


def _key(method: str, path: str, request: json_codec.Value) -> bytes:
    return hashlib.sha256(json_codec.encode([method, path, _sort(request)])).digest()


def _sort(value: json_codec.Value) -> json_codec.Value:
    """Sort the names of objects: clients need not keep their order."""
    match value:
        case dict():
            return {name: _sort(value[name]) for name in sorted(value)}
        case list():
            return [_sort(item) for item in value]
        case _:
            return value


def _value(body: bytes) -> json_codec.Value:
    """Return a body's JSON value; its text if it is not JSON, None if it is empty."""
    if not body:
        return None
    try:
        return json_codec.decode(body)
    except json_codec.NotJson:
        return body.decode(errors="replace")


def _is_exchange(scope: Scope) -> bool:
    return scope["type"] == "http" and str(scope["path"]).startswith("/v1/")


def _headers(pairs: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in pairs}


def _target(scope: Scope) -> str:
    query = scope.get("query_string", b"").decode("latin-1")
    return f"{scope['path']}?{query}" if query else str(scope["path"])
