"""The ASGI application: routes requests to the endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentweb.emulator import (
    api_accounts,
    batches_endpoint,
    control_endpoint,
    files_endpoint,
    models_endpoint,
)
from agentweb.emulator.asgi import Disconnected, Receive, Scope, Send, read_body
from agentweb.emulator.clock import Clock
from agentweb.emulator.errors import ApiError, TooLarge
from agentweb.emulator.http_exchange import HttpExchange
from agentweb.emulator.messages_endpoint import count_tokens, create_message
from agentweb.emulator.scenes import SCENES
from agentweb.emulator.scenes.scene import Scene
from agentweb.emulator.script import Script
from agentweb.emulator.state import Emulator

#: Seconds between deltas when people watch a demonstration.
DEMO_PACE = 0.012
MAX_BODY = 32 * 1_048_576


class EmulatorApp:
    """An ASGI app over one `Emulator`."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        exchange = HttpExchange(self.emulator, scope, receive, send)
        try:
            await _route(exchange)
        except ApiError as error:
            await exchange.refuse(error)
        except Disconnected:
            return


def create_app(
    *,
    scenes: Sequence[Scene] = SCENES,
    script: Script | None = None,
    clock: Clock | None = None,
    seed: int = 0,
    record: bool = False,
    pace: float = 0.0,
    **settings: Any,
) -> EmulatorApp:
    """Build an emulator; `app.emulator` holds its bills, log and cache.

    A script answers first; the scenes answer what it does not.
    """
    if clock is not None:
        settings["clock"] = clock
    settings["scenes"] = scenes if script is None else (script, *scenes)
    return EmulatorApp(Emulator(script=script, seed=seed, record=record, pace=pace, **settings))


async def _route(exchange: HttpExchange) -> None:
    path, method = exchange.path.rstrip("/"), exchange.scope["method"]
    if path.startswith(control_endpoint.PREFIX):
        await control_endpoint.handle(exchange, await _read(exchange))
        return
    declared = exchange.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > MAX_BODY:
        raise TooLarge
    exchange.identify(b"")
    body = await _read(exchange)
    nonce = exchange.identify(body)
    exchange.account = account = api_accounts.admit(exchange.headers, exchange.emulator.bad_keys)
    api_accounts.find_version(exchange.headers)
    match method, path:
        case "POST", "/v1/messages":
            await create_message(exchange, account, nonce)
        case _ if (path + "/").startswith(f"{batches_endpoint.PREFIX}/"):
            await batches_endpoint.handle(exchange, account, nonce)
        case "POST", "/v1/messages/count_tokens":
            await count_tokens(exchange, account)
        case _ if (path + "/").startswith(f"{files_endpoint.PREFIX}/"):
            await files_endpoint.handle(exchange, account, nonce)
        case "GET", _ if path == "/v1/models" or path.startswith("/v1/models/"):
            await models_endpoint.handle(exchange)
        case _, "/v1/messages" | "/v1/messages/count_tokens" | "/v1/models":
            raise ApiError(405, "Method Not Allowed")
        case _:
            raise ApiError(404, "Not Found")


async def _read(exchange: HttpExchange) -> bytes:
    body = await read_body(exchange.receive, MAX_BODY)
    if body is None:
        raise TooLarge
    return body


async def _live(receive: Receive, send: Send) -> None:
    while (await receive())["type"] == "lifespan.startup":
        await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})
