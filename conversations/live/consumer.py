"""The socket of a chat: the server speaks, the page only listens.

Sending and stopping are plain POSTs, stored before anything is published, so a socket carries
nothing that could be lost. On connect, whenever it missed something and when another path is shown,
the page gets a snapshot of everything behind the turn it ends with, then frames as they come.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs

from channels.auth import get_user
from channels.consumer import get_handler_name
from channels.exceptions import DenyConnection
from channels.generic.websocket import AsyncWebsocketConsumer
from django.http import Http404, HttpRequest
from django.utils.translation import get_language_from_request

from conversations.conf import conf
from conversations.db import find_page_slots, run_db_handshake, run_db_page_read
from conversations.library.access import load_owned_conversation
from conversations.live import render
from conversations.live.hub import Reader, Topic, hub
from conversations.live.publish import follow_conversation, leave_conversation
from conversations.live.watch import watch
from conversations.log.page_version import read_versions
from conversations.telemetry.ids import add_log_ids
from conversations.telemetry.metrics import FRAMES, RESYNCS, SOCKETS
from conversations.transcript.paging import parse_bookmark

if TYPE_CHECKING:
    from conversations.models import Conversation, User

logger = logging.getLogger("agentweb.sockets")
#: Frames the page may send between two checks of the watch; it has nothing to say.
MOST_RECEIVED = 200
#: Without Channels' wrapper, which runs it in one thread for all, one after the other.
_user_of: Any = cast("Any", get_user).func
#: Close code of a socket beyond the limit of its user; the page says so.
CROWDED = 4429


class ChatConsumer(AsyncWebsocketConsumer):
    """One tab on one conversation."""

    #: None: the process listens for all its sockets, and Redis may be away when one comes.
    channel_layer_alias = ""
    conversation: Conversation
    session_key = ""
    topic: Topic | None = None
    reader: Reader | None = None
    follower: asyncio.Task[None] | None = None
    received = 0
    #: Whether the watch has ended it.
    is_ended = False

    async def connect(self) -> None:
        user, conversation = await run_db_handshake(self._authorise)
        if conversation is None:
            raise DenyConnection
        self.conversation = conversation
        add_log_ids(user=user.pk, conversation=self.conversation.pk)
        self.session_key = self.scope["session"].session_key or ""
        self.bookmark = parse_bookmark(self.scope["query_string"])
        self.version = _read_version(self.scope["query_string"])
        await self.accept()
        if watch.count(user.pk) >= conf.max_sockets_per_user:
            await self.close(CROWDED)
            return
        self.topic = self._enter_topic()
        self.reader = Reader(self.topic)
        self.topic.readers.add(self.reader)
        if len(self.topic.readers) == 1:
            follow_conversation(self.conversation.pk, self.topic)
        self.follower = asyncio.create_task(self._follow(self.topic, self.reader))

    def _authorise(self) -> tuple[User, Conversation | None]:
        """Return who connects and to which conversation; None: it is none of theirs."""
        user = _user_of(self.scope)
        if not user.is_authenticated:
            return user, None
        try:
            found = load_owned_conversation(user, self.scope["url_route"]["kwargs"]["public_id"])
        except Http404:
            return user, None
        return user, found

    async def dispatch(self, message: Any) -> None:
        # Channels would close old connections first, in one thread for all, which has none here.
        await getattr(self, get_handler_name(message))(message)

    def _enter_topic(self) -> Topic:
        topic = hub.enter(self.conversation.pk)
        topic.owner = self.conversation.owner_id
        topic.language = _language(self.scope)
        watch.add(self)
        SOCKETS.add()
        return topic

    async def disconnect(self, code: int) -> None:
        if self.follower is not None:
            self.follower.cancel()
        if self.topic is not None and self.reader is not None:
            watch.remove(self)
            SOCKETS.add(-1)
            self.topic.readers.discard(self.reader)
            if not self.topic.readers:
                leave_conversation(self.conversation.pk)
            hub.leave(self.conversation.pk)
            self.topic = self.reader = None

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        # The page sends nothing; a client that sends on and on is not the page.
        self.received += 1
        if self.received > MOST_RECEIVED:
            await self.close(4008)

    async def end(self, code: int) -> None:
        """Close the socket for good: nothing more is sent."""
        self.is_ended = True
        if self.follower is not None:
            self.follower.cancel()
        await self.close(code)

    async def send_if_free(self, frame: str) -> None:
        """Send a frame that is about no conversation, unless the client does not keep up anyway."""
        flow: Any = self.scope.get("flow")
        if flow is None or not flow.is_blocked:
            await self.send(text_data=frame)

    async def _follow(self, topic: Topic, reader: Reader) -> None:
        try:
            if not await self._is_new(topic, reader):
                await self._send_snapshot(topic, reader)
            while True:
                await reader.wait()
                await self._send_frames(topic, reader)
        except asyncio.CancelledError:
            raise
        except Exception:
            logger.exception("a socket failed; the page reconnects")
            await self.close(1011)

    async def _is_new(self, topic: Topic, reader: Reader) -> bool:
        """Begin with a page that was just made: no turn runs, and nothing has changed since."""
        if self.version is None:
            return False
        key = self.conversation.pk
        async with topic.lock:
            found = await run_db_page_read(read_versions, [key])
            if found.get(key) != self.version:
                return False
            topic.follow_snapshot(self.version, 0, has_text=False)
            reader.begin(self.version)
        return True

    async def _send_frames(self, topic: Topic, reader: Reader) -> None:
        """Send what the page does not have; a snapshot, when frames do not lead there."""
        found = reader.read()
        if found is None:
            await self._send_snapshot(topic, reader)
        elif found:
            FRAMES.add(len(found))
            await self.send(text_data="\n".join(found))

    async def _send_snapshot(self, topic: Topic, reader: Reader) -> None:
        """Send the present state, read while no event comes in between."""
        # First its turn among the readers: while the lock is held nothing is published here.
        async with find_page_slots(), topic.lock:
            found = await run_db_page_read(
                render.render_snapshot,
                self.conversation.pk,
                self.bookmark,
                topic.live,
                topic.language,
            )
            topic.follow_snapshot(found.version, found.turn, has_text=found.has_text)
            reader.begin(found.version)
            html = "\n".join((found.html, *topic.progress.values()))
        self.bookmark = found.bookmark
        RESYNCS.add()
        FRAMES.add()
        await self.send(text_data=html)


def _read_version(query: bytes) -> int | None:
    """Read the version that a page was made at, if it says so and nothing runs on it."""
    named = parse_qs(query.decode("ascii", "replace")).get("version", [])
    is_number = len(named) == 1 and named[0].isdecimal() and len(named[0]) < 19
    return int(named[0]) if is_number else None


def _language(scope: Any) -> str:
    """Return the language that the browser's pages are in."""
    request = HttpRequest()
    request.COOKIES = scope.get("cookies", {})
    headers = dict(scope["headers"])
    request.META["HTTP_ACCEPT_LANGUAGE"] = headers.get(b"accept-language", b"").decode("latin1")
    return get_language_from_request(request)
