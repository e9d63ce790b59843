"""Tabs on a chat, without a browser: sockets as the page opens them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlencode

from channels.testing import WebsocketCommunicator
from django.conf import settings as django_settings
from django.test import Client

from agentweb.asgi import application
from agentweb.bench.tabs import BEAT
from conversations.db import run_db
from conversations.live.socket_access import socket_token
from conversations.models import Conversation, User
from tests.support import stored_turns

HOST = "127.0.0.1:8000"
ORIGIN = f"http://{HOST}"


def session_of(user: User) -> str:
    client = Client()
    client.force_login(user)
    return client.cookies[django_settings.SESSION_COOKIE_NAME].value


def socket(
    path: str, session: str = "", *, origin: str | None = ORIGIN, host: str = HOST,
    token: str | None = None,
) -> WebsocketCommunicator:  # fmt: skip
    named = urlencode({"token": socket_token(session) if token is None else token})
    path += ("&" if "?" in path else "?") + named
    headers = [(b"host", host.encode()), (b"cookie", f"sessionid={session}".encode())]
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    return WebsocketCommunicator(application, path, headers=headers)


async def is_accepted(found: WebsocketCommunicator) -> bool:
    accepted, _ = await found.connect(timeout=60)
    if accepted:
        await found.disconnect()
    return accepted


@asynccontextmanager
async def connected(
    conversation: Conversation, session: str = "", query: str = ""
) -> AsyncIterator[WebsocketCommunicator]:
    owner = await run_db(User.objects.get, pk=conversation.owner_id)
    key = session or await run_db(session_of, owner)
    found = socket(f"/ws/c/{conversation.public_id}/?{query}", key)
    accepted, _ = await found.connect(timeout=60)
    assert accepted
    try:
        yield found
    finally:
        await found.disconnect()


async def ada_and_her_conversation() -> tuple[User, Conversation]:
    played = await run_db(stored_turns.played)
    return played.user, played.conversation


async def frame_of(found: WebsocketCommunicator) -> str:
    """Return the next frame about the conversation; skip those about the server."""
    while BEAT.match(frame := str(await found.receive_from(timeout=60))):
        pass
    return frame


async def closed_with(found: WebsocketCommunicator) -> int:
    """Return the close code of the server; skip frames before it."""
    while True:
        said_last = await found.receive_output(timeout=60)
        if said_last["type"] == "websocket.close":
            return int(said_last["code"])
