"""The whole app with the emulator: what people post, and the page that their socket builds."""

from __future__ import annotations

import asyncio
import gc
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.test import Client

from agentweb.asgi import application
from agentweb.emulator.server import EmulatorServer
from conversations.agent.answer import ToolUse
from conversations.agent.ports import ToolDone
from conversations.claude.client import Claude, Deadlines
from conversations.conf import conf
from conversations.db import run_db
from conversations.live.socket_access import socket_token
from conversations.models import LIVE, Conversation, Transformation, Turn, User
from conversations.runtime import dispatch
from conversations.runtime.adapters import TurnTools, workspace_for
from conversations.runtime.supervisor import Supervisor
from tests.support import people_and_turns
from tests.support.running_turns import supervising, until
from tests.web.fold import Page
from tests.web.tabs import frame_of

HOST = "127.0.0.1:8000"
PATIENT, HASTY = Deadlines(300, 300, 600), Deadlines(0.4, 0.4, 3)
FINAL = ("done", "failed", "cancelled", "interrupted")


@dataclass
class Clock:
    """The clock of the circuit breaker, which stands still until a test advances it."""

    ahead: float = 0.0

    def __call__(self) -> float:
        return self.ahead


@dataclass
class Chat:
    """One person's conversation: what they post, and the page that their socket builds."""

    app: App
    user: User
    client: Client
    conversation: Conversation
    page: Page = field(default_factory=Page)
    #: Every state the page has shown.
    shown: list[str] = field(default_factory=list)
    #: What was posted and acknowledged.
    sent: list[str] = field(default_factory=list)

    async def post(self, name: str, **data: str) -> int:
        path = f"/c/{self.conversation.public_id}/{name}/"
        answer = await run_db(self.client.post, path, data, headers={"HX-Request": "true"})
        return int(answer.status_code)

    async def say(self, text: str, seconds: float = 120) -> Turn:
        """Send a message and wait for the end of its turn, in the rows and on the page."""
        turn = await self.send(text)
        return await self.ended(turn, seconds)

    async def send(self, text: str) -> Turn:
        assert await self.post("send", text=text, client_id=str(uuid4())) == 200
        self.sent.append(text)
        return await run_db(
            lambda: Turn.objects.filter(conversation=self.conversation).latest("pk")
        )

    async def ended(self, turn: Turn, seconds: float = 120) -> Turn:
        await until(lambda: not Turn.objects.filter(pk=turn.pk, state__in=LIVE).exists(), seconds)
        row = await run_db(Turn.objects.get, pk=turn.pk)
        async with asyncio.timeout(60):
            while self.state(row.number) not in FINAL:
                await asyncio.sleep(0.01)
        assert self.state(row.number) == row.state
        return row

    def state(self, number: int) -> str:
        found = self.page.find(f"turn-{number}-status")
        return found.attributes["data-state"] if found else ""

    def text(self, number: int) -> str:
        return self.page.text(f"turn-{number}")

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[Chat]:
        """Apply the frames of the socket to the page, as the browser does."""
        socket = await self.socket()

        async def follow() -> None:
            while True:
                self.page.take(await socket.receive_from(timeout=3_600))
                self.shown.append(self.text("1") or " ".join(self.page.root.text.split()))

        task = asyncio.create_task(follow())
        try:
            yield self
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await socket.disconnect()

    async def socket(self) -> WebsocketCommunicator:
        key = self.client.cookies[settings.SESSION_COOKIE_NAME].value
        headers = [
            (b"host", HOST.encode()),
            (b"origin", f"http://{HOST}".encode()),
            (b"cookie", f"{settings.SESSION_COOKIE_NAME}={key}".encode()),
        ]
        path = f"/ws/c/{self.conversation.public_id}/?after=0&token={socket_token(key)}"
        socket = WebsocketCommunicator(application, path, headers=headers)
        accepted, _ = await socket.connect(timeout=60)
        assert accepted
        return socket

    async def fresh(self) -> Page:
        """Return a newly loaded page."""
        socket, page = await self.socket(), Page()
        page.take(await frame_of(socket))
        await socket.disconnect()
        return page


@dataclass
class App:
    """A supervisor, its emulator, and its people."""

    supervisor: Supervisor
    emulator: EmulatorServer
    clock: Clock
    deadlines: Deadlines = PATIENT
    #: How often each tool call has run, by turn and id.
    runs: Counter[tuple[int, str]] = field(default_factory=Counter)

    @asynccontextmanager
    async def chat(self, *, limit: int = 50_000_000) -> AsyncIterator[Chat]:
        """Create a person with a budget and an open page on an empty conversation."""

        def arrive() -> Chat:
            user = people_and_turns.person(f"p{uuid4().hex[:8]}")
            people_and_turns.limited(user, limit)
            client = Client()
            client.force_login(user)
            conversation = Conversation.objects.create(owner=user, model=conf.model)
            return Chat(self, user, client, conversation)

        async with (await run_db(arrive)).watched() as chat:
            yield chat

    async def point_at(self, url: str, key: str = "sk-test") -> None:
        """Use another address or key, with this app's clock for its circuit breaker."""
        old = self.supervisor._claude
        self.supervisor._claude = Claude(
            api_key=key, base_url=url, deadlines=self.deadlines, now=self.clock
        )
        if old is not None:
            await old.close()

    @asynccontextmanager
    async def hurrying(self, deadlines: Deadlines = HASTY) -> AsyncIterator[None]:
        """Use short deadlines inside the block only, since a busy machine is slow."""
        patient, self.deadlines = self.deadlines, deadlines
        await self.point_at(self.emulator.url)
        try:
            yield
        finally:
            self.deadlines = patient
            await self.point_at(self.emulator.url)

    @property
    def statuses(self) -> list[int]:
        """The HTTP statuses of the requests that the emulator saw."""
        return [row.status for row in self.emulator.emulator.log]


@asynccontextmanager
async def running(emulator: EmulatorServer, monkeypatch: Any) -> AsyncIterator[App]:
    emulator.emulator.reset()
    tasks = asyncio.all_tasks()
    async with supervising() as supervisor:
        monkeypatch.setattr(dispatch, "supervisor", supervisor)
        app = App(supervisor, emulator, Clock())
        monkeypatch.setattr(TurnTools, "run", counting(app.runs))
        await app.point_at(emulator.url)
        yield app
    # A handshake that was given up is only closed by the garbage collector, mostly in generation 1.
    gc.collect(1)
    deadline, rounds = time.monotonic() + 60, 0
    while (left := asyncio.all_tasks() - tasks - {asyncio.current_task()}) or emulator.connections:
        assert time.monotonic() < deadline, f"left: {left}, {emulator.connections} connections"
        await asyncio.sleep(0.01)
        rounds += 1
        if rounds % 50 == 0:
            gc.collect()


def counting(runs: Counter[tuple[int, str]]) -> Callable[[TurnTools, ToolUse], Awaitable[ToolDone]]:
    """Return a `run` of the tools that also counts."""
    run = TurnTools.run

    async def counted(self: TurnTools, use: ToolUse) -> ToolDone:
        runs[self._lease.turn_id, use.id] += 1
        return await run(self, use)

    return counted


def files(chat: Chat) -> list[str]:
    """List the files that tools have written for a person."""
    return [entry.path for entry in workspace_for(chat.user.pk).entries()]


def reductions(chat: Chat) -> list[tuple[str, str]]:
    rows = Transformation.objects.filter(conversation=chat.conversation).order_by("seq")
    return [(row.kind, row.outcome) for row in rows]
