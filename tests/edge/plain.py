"""The server with an application that does nothing but harm, and little room: 256 files."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentweb.settings")
os.environ["AGENTWEB_LOOP_BLOCK_MS"] = "500"
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

import django  # noqa: E402

django.setup()

from agentweb.edge import channel, http_server, sockets  # noqa: E402

channel.PATIENCE = sockets.PATIENCE = 2.0
MESSAGE = "x" * 1_000_000
told: list[Any] = []


async def application(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await talk(scope["path"], receive, send)
        return
    body = b""
    if scope["path"] == "/told/":
        body = json.dumps(told).encode()
    elif scope["path"] == "/loop/":
        body = type(asyncio.get_running_loop()).__module__.encode()
    elif scope["path"] == "/block/":
        time.sleep(1.5)
    elif scope["path"] == "/forget/":
        told.clear()
    elif scope["path"] == "/slow/":
        sys.stdout.write("asked\n")
        await asyncio.sleep(1)
        body = b"at last"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/flood/":
        await receive()
        gone = asyncio.ensure_future(receive())
        for number in range(300):
            if gone.done():
                return
            told[:] = ["file", number]
            await send({"type": "http.response.body", "body": MESSAGE.encode(), "more_body": True})
            # Where nobody is left to send to, nothing waits.
            await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": body})


async def talk(path: str, receive: Any, send: Any) -> None:
    await receive()
    if path == "/undecided/":
        sys.stdout.write("undecided\n")
        try:
            await asyncio.sleep(3_600)
        finally:
            sys.stdout.write("forgotten\n")
    await send({"type": "websocket.accept"})
    if path.startswith("/close/"):
        await send({"type": "websocket.close", "code": int(path.split("/")[2])})
    if path == "/at-once/":
        await send({"type": "websocket.send", "text": "first"})
        time.sleep(1.2)
        await send({"type": "websocket.send", "text": "second"})
    flooding = asyncio.create_task(flood(send)) if path == "/flood/" else None
    while (message := await receive())["type"] != "websocket.disconnect":
        if path == "/busy/":
            await asyncio.sleep(1)
    if flooding is not None:
        flooding.cancel()
    told.append(["closed", message["code"]])


async def flood(send: Any) -> None:
    for number in range(300):
        told[:] = ["message", number]
        await send({"type": "websocket.send", "text": MESSAGE})
        # Where nobody is left to send to, nothing waits.
        await asyncio.sleep(0)


async def drain() -> None:
    sys.stdout.write("drained\n")


def ready() -> None:
    server.watch()
    sys.stdout.write("ready\n")


# serve --port N
address = f"tcp:port={sys.argv[3]}:interface=127.0.0.1"
server = http_server.EdgeServer(application, address, ready=ready, drain=drain)
server.run()
sys.stdout.write("ended\n")
