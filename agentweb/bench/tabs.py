"""A tab on a chat, as its page behaves: a socket that reconnects, and the page its frames make.

Delays, timeouts and final close codes are those of `static/connection.js`. A heartbeat carries
nothing of the chat and may arrive before the first snapshot: a tab is ready with its snapshot, or,
back from a restart unchanged, with its budgets.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from agentweb.bench.shown_page import Shown
from agentweb.bench.websocket_client import ABNORMAL, Closed, Socket, connect

#: Seconds: the longest pause, handshake and silence, and the age of a connection that counts as
#: good.
PAUSE, HANDSHAKE, SILENCE, GOOD = 10.0, 15.0, 30.0, 10.0
BEAT = re.compile(r"^<!-- alive(?: (\d+))? -->$")
#: Close codes after which a page does not reconnect: log-in needed, conversation gone, too many
#: tabs.
FOR_GOOD = (4401, 4404, 4429)
TOO_SLOW = (4008, 4408)
_SNAPSHOT = '<div id="live" hx-swap-oob="outerHTML">'
#: What a page that has the newest version is sent when it comes back.
_BUDGETS = 'id="composer-state"'
_LEAVES = re.compile(r'<div\s+id="restarting"\s+hidden\s+data-within="(\d+)"')


class Tab:
    """One tab; `follow` keeps it open until it is cancelled or closed for good."""

    def __init__(
        self, url: str, chat: dict[str, Any], handle_message: Callable[[str], None] | None = None
    ) -> None:
        self.chat, self.shown = chat, Shown()
        #: Set while the current socket has delivered its snapshot; `came`: when the last one did.
        self.is_here = asyncio.Event()
        self.came = 0.0
        #: Time at which its socket was first lost; 0: never.
        self.lost = 0.0
        self.opened = self.messages = 0
        #: Counts of failed handshakes and of sockets that fell silent, by reason.
        self.failed: Counter[str] = Counter()
        self._url, self._handle_message = url.replace("http", "ws", 1), handle_message
        self._heard = self._within = 0.0
        #: The version of the last sign of life; whether the present socket was opened with one.
        self._left, self._has_left = "", False

    async def follow(self) -> None:
        tries = 0
        while True:
            opened, code = 0.0, ABNORMAL
            try:
                socket = await self._connect()
                opened = time.time()
                code = (await self._ended(socket)).code
            except OSError as error:
                self.failed[type(error).__name__ + f" {error}".rstrip()] += 1
                if opened:
                    # Silence: the page reconnects at once.
                    continue
            finally:
                self.is_here.clear()
                if opened and not self.lost:
                    self.lost = time.time()
            if code in FOR_GOOD:
                return
            if opened and time.time() - opened > GOOD:
                tries = 0
            if code in TOO_SLOW:
                tries = max(tries, 2)
            most = self._within or min(PAUSE, 2.0**tries)
            tries, self._within = tries + 1, 0.0
            await asyncio.sleep(random.uniform(0, most))  # noqa: S311 - jitter

    async def _connect(self) -> Socket:
        after, mark = self.shown.bookmark
        left = {"left": self._left} if self._left else {}
        self._has_left = bool(left)
        query = urlencode({"after": after, "mark": mark, "token": self.chat["token"]} | left)
        address = f"{self._url}/ws/c/{self.chat['chat']}/?{query}"
        cookies = {"sessionid": self.chat["session"]}
        self._within = 0.0
        made = await connect(address, cookies=cookies, take=self._take, seconds=HANDSHAKE)
        self.opened += 1
        return made

    async def _ended(self, socket: Socket) -> Closed:
        """Wait for the end; raises TimeoutError when the server is silent for too long."""
        self._heard = time.time()
        try:
            while True:
                try:
                    return await socket.wait_closed(SILENCE)
                except TimeoutError:
                    if time.time() - self._heard > SILENCE:
                        raise
        finally:
            socket.abort()

    def _take(self, message: str) -> None:
        self._heard = time.time()
        self.messages += 1
        if beat := BEAT.match(message):
            self._left = beat[1] or self._left
            return
        is_whole = _SNAPSHOT in message or (self._has_left and _BUDGETS in message)
        if not self.is_here.is_set() and is_whole:
            self.came = time.time()
            self.is_here.set()
        if leaves := _LEAVES.search(message):
            self._within = float(leaves[1])
        self.shown.take_message(message)
        if self._handle_message is not None:
            self._handle_message(message)
