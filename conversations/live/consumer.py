"""The socket of a chat: the server sends, the page only receives.

Messages and stops are plain POSTs, stored before anything is published, so a broken socket loses no
data. The page gets a snapshot (everything after the last turn it shows) when it connects without
the newest version, when it missed a frame and when another path is shown; after that it gets
frames. While the database does not answer, a handshake is refused for now, and a socket that needs
it is closed: the page tries again.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from channels.consumer import get_handler_name
from channels.exceptions import DenyConnection, StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest
from django.utils.translation import get_language_from_request

from conversations.accounts.second_factors import must_add_factor
from conversations.accounts.sessions import find_session_user
from conversations.agent.events import BudgetMoved
from conversations.conf import conf
from conversations.db import find_page_slots, run_db_handshake, run_db_page_read
from conversations.library.access import find_live_turn, load_owned_conversation
from conversations.library.impersonations import IMPERSONATION
from conversations.live import render
from conversations.live.hub import Reader, Topic, hub
from conversations.live.publish import follow_conversation, leave_conversation
from conversations.live.watch import watch
from conversations.log.page_version import read_versions
from conversations.telemetry.ids import add_log_ids
from conversations.telemetry.metrics import FRAMES, RESYNCS, SOCKETS
from conversations.transcript.paging import is_same_history, parse_bookmark

if TYPE_CHECKING:
    from conversations.models import Conversation, User

logger = logging.getLogger("agentweb.sockets")
#: Frames that a client may send between two checks of the watch; our page sends none.
MOST_RECEIVED = 200
#: Close code of a socket beyond its user's limit; the page shows a message.
CROWDED = 4429
#: Close code while the database does not answer; the page says so and connects again.
AWAY = 1013


class ChatConsumer(AsyncWebsocketConsumer):
    """The connection of one tab to one conversation."""

    #: No channel layer for each socket: the relay subscribes once for the process, and a socket
    #: must be accepted while Redis is unavailable.
    channel_layer_alias = ""
    conversation: Conversation
    session_key = ""
    topic: Topic | None = None
    reader: Reader | None = None
    follower: asyncio.Task[None] | None = None
    #: The version that the page shows by what was sent to it; None before its first snapshot.
    shown: int | None = None
    received = 0
    #: Whether the watch has closed this socket.
    is_ended = False

    async def connect(self) -> None:
        try:
            found = await run_db_handshake(self._authorise)
        except (OperationalError, InterfaceError) as error:
            await self._close_for_now(error)
            return
        if found is None:
            raise DenyConnection
        user, self.conversation = found
        add_log_ids(user=user.pk, conversation=self.conversation.pk)
        self.session_key = self.scope["session"].session_key or ""
        self.bookmark = parse_bookmark(self.scope["query_string"])
        query = self.scope["query_string"]
        self.version, self.left = _read_version(query), _read_version(query, "left")
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

    def _authorise(self) -> tuple[User, Conversation] | None:
        """Return the user and the conversation; None when it is not one of theirs."""
        session = self.scope["session"]
        # Not by Channels' own search: it ends a session that was begun under a former secret key.
        user = find_session_user(session)
        if user is None or must_add_factor(session, user) or session.get(IMPERSONATION):
            return None
        try:
            return user, load_owned_conversation(
                user, self.scope["url_route"]["kwargs"]["public_id"]
            )
        except Http404:
            return None

    async def dispatch(self, message: Any) -> None:
        # Channels' own dispatch first closes old database connections on its single thread, which
        # holds none here.
        await getattr(self, get_handler_name(message))(message)

    async def websocket_disconnect(self, message: Any) -> None:
        # Channels' own closes them there once more.
        await self.disconnect(message["code"])
        raise StopConsumer

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
            # Its error will refer to this socket, which must not refer to it in turn.
            self.follower = None
        if self.topic is not None and self.reader is not None:
            watch.remove(self)
            SOCKETS.add(-1)
            self.topic.readers.discard(self.reader)
            if not self.topic.readers:
                leave_conversation(self.conversation.pk)
            hub.leave(self.conversation.pk)
            self.topic = self.reader = None

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        # Our page sends nothing, so a client that keeps sending is closed.
        self.received += 1
        if self.received > MOST_RECEIVED:
            await self.close(4008)

    async def end(self, code: int) -> None:
        """Close the socket; nothing more is sent to it."""
        self.is_ended = True
        if self.follower is not None:
            self.follower.cancel()
        await self.close(code)

    async def send_if_free(self, frame: str) -> None:
        """Send a frame that belongs to no conversation, unless the client is not keeping up."""
        flow: Any = self.scope.get("flow")
        if flow is None or not flow.is_blocked:
            await self.send(text_data=frame)

    async def _follow(self, topic: Topic, reader: Reader) -> None:
        try:
            if not await self._resume(topic, reader):
                await self._send_snapshot(topic, reader)
            while True:
                await reader.wait()
                await self._send_frames(topic, reader)
        except asyncio.CancelledError:
            raise
        except (OperationalError, InterfaceError) as error:
            await self._close_for_now(error)
        except Exception:
            logger.exception("a socket failed; the page reconnects")
            await self.close(1011)

    async def _close_for_now(self, error: Exception) -> None:
        logger.warning("a socket is closed for now: %s", str(error).partition("\n")[0])
        await self.close(AWAY)

    async def _resume(self, topic: Topic, reader: Reader) -> bool:
        """Start the reader without a snapshot if the page shows the newest version; say whether."""
        version = self.left if self.version is None else self.version
        if version is None:
            return False
        # As for a snapshot: nothing is published while the lock is held.
        async with find_page_slots(), topic.lock:
            html = await run_db_page_read(self._read_missed, version, topic.language)
            if html is None:
                return False
            topic.follow_snapshot(version, 0, has_text=False)
            reader.begin(version)
        if html:
            await self.send(text_data=html)
        self.shown = version
        return True

    def _read_missed(self, version: int, language: str) -> str | None:
        """Return what a page of this version lacks; None: a snapshot.

        A page that comes back after it lost its server lacks the budgets, which have no version;
        the text of an answer has none either. It names the version of the last sign of life: one
        that it has left since is not the newest.
        """
        conversation, key = self.conversation, self.conversation.pk
        if read_versions([key]).get(key) != version:
            return None
        if self.version is not None:
            return ""
        if find_live_turn(conversation) or not is_same_history(conversation, self.bookmark):
            return None
        return render.render_events(key, BudgetMoved(), language=language)

    async def _send_frames(self, topic: Topic, reader: Reader) -> None:
        """Send the frames that the page lacks, or a snapshot where frames are missing."""
        found, version = reader.read(), reader.version
        if found is None:
            await self._send_snapshot(topic, reader)
        elif found:
            FRAMES.add(len(found))
            await self.send(text_data="\n".join(found))
            self.shown = version

    async def _send_snapshot(self, topic: Topic, reader: Reader) -> None:
        """Send the present state, read while no event is published."""
        # Acquire the page slot before the lock: nothing is published while the lock is held.
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
        self.shown = found.version


def _read_version(query: bytes, name: str = "version") -> int | None:
    """Read the version that the page shows; None when the query names none."""
    named = parse_qs(query.decode("ascii", "replace")).get(name, [])
    is_number = len(named) == 1 and named[0].isdecimal() and len(named[0]) < 19
    return int(named[0]) if is_number else None


def _language(scope: Any) -> str:
    """Return the language of the pages in this browser."""
    request = HttpRequest()
    request.COOKIES = scope.get("cookies", {})
    headers = dict(scope["headers"])
    request.META["HTTP_ACCEPT_LANGUAGE"] = headers.get(b"accept-language", b"").decode("latin1")
    return get_language_from_request(request)
