"""The socket of a chat: it tells, the page's forms ask.

Sending and stopping are plain POSTs, stored before anything is announced, so a socket carries
nothing that could be lost. On connect, whenever it fell behind and when another path is shown, the
page gets a snapshot of everything behind the turn it ends with, then frames as they come.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, cast

from channels.exceptions import DenyConnection
from channels.generic.websocket import AsyncWebsocketConsumer
from django.http import Http404, HttpRequest
from django.utils.translation import get_language_from_request

from conversations import frames
from conversations.db import db
from conversations.hub import Topic, hub
from conversations.queries.conversations import conversation_for, is_kept
from conversations.queries.people import is_logged_in

if TYPE_CHECKING:
    from conversations.models import Conversation, User

logger = logging.getLogger("agentweb.sockets")
#: Seconds between two looks at whether the session is still good.
RECHECK_SECONDS = 5
#: Why a socket is closed for good; the page asks for the log-in, or says that it is over.
LOGGED_OUT, GONE = 4401, 4404
#: Frames the page may send in one period; it has nothing to say but acknowledgements.
MOST_RECEIVED = 200


class ChatConsumer(AsyncWebsocketConsumer):
    """One tab on one conversation."""

    conversation: Conversation
    topic: Topic | None = None
    follower: asyncio.Task[None] | None = None
    received = 0

    async def connect(self) -> None:
        user = cast("User", self.scope["user"])
        if not user.is_authenticated:
            raise DenyConnection
        try:
            self.conversation = await db(
                conversation_for, user, self.scope["url_route"]["kwargs"]["public_id"]
            )
        except Http404:
            raise DenyConnection from None
        self.after = _after(self.scope["query_string"])
        self.topic = hub.enter(self.conversation.pk)
        self.topic.sockets += 1
        self.topic.owner = self.conversation.owner_id
        self.topic.language = _language(self.scope)
        await self.accept()
        self.follower = asyncio.create_task(self._follow(self.topic))

    async def disconnect(self, code: int) -> None:
        if self.follower is not None:
            self.follower.cancel()
        if self.topic is not None:
            self.topic.sockets -= 1
            hub.leave(self.conversation.pk)
            self.topic = None

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        # The page has nothing to say here; one that talks on and on is not the page.
        self.received += 1
        if self.received > MOST_RECEIVED:
            await self.close(4008)

    async def _follow(self, topic: Topic) -> None:
        try:
            clock = asyncio.get_running_loop().time
            position = await self._snapshot(topic)
            due = clock() + RECHECK_SECONDS
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(due):
                        await topic.news(position)
                # By the clock, not in a pause: an answer may go on for as long as a turn may last.
                if clock() >= due:
                    reason = await self._reason_to_close()
                    if reason is not None:
                        await self.close(reason)
                        return
                    self.received = 0
                    due = clock() + RECHECK_SECONDS
                position = await self._tell(topic, position)
        except asyncio.CancelledError:
            raise
        except Exception:
            logger.exception("a socket failed; the page reconnects")
            await self.close(1011)

    async def _tell(self, topic: Topic, position: int) -> int:
        """Send what came after `position`; everything, when some of it is gone."""
        found = topic.after(position)
        if found is None:
            return await self._snapshot(topic)
        position = topic.position
        if found:
            await self.send(text_data="\n".join(found))
        return position

    async def _snapshot(self, topic: Topic) -> int:
        """Send the present state, read while no event comes in between."""
        async with topic.lock:
            read = await db(
                frames.snapshot, self.conversation.pk, self.after, topic.live, topic.language
            )
            position = topic.position
        html, self.after = read
        await self.send(text_data="\n".join((html, *topic.said.values())))
        return position

    async def _reason_to_close(self) -> int | None:
        """Say why the page is told no more: its session is over, or the conversation is gone."""
        session = self.scope["session"].session_key
        if not await db(is_logged_in, session, self.conversation.owner_id):
            return LOGGED_OUT
        return None if await db(is_kept, self.conversation) else GONE


def _after(query: bytes) -> int:
    name, _, value = query.decode("ascii", "replace").partition("=")
    return int(value) if name == "after" and value.isdigit() and len(value) < 10 else 0


def _language(scope: Any) -> str:
    """Give the language of the browser, as its pages are in."""
    request = HttpRequest()
    request.COOKIES = scope.get("cookies", {})
    headers = dict(scope["headers"])
    request.META["HTTP_ACCEPT_LANGUAGE"] = headers.get(b"accept-language", b"").decode("latin1")
    return get_language_from_request(request)
