"""Turns run by the real supervisor with the real emulator, on the database of the run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from uuid import uuid4

from agentweb.emulator.server import EmulatorServer
from conversations.context.view import wire
from conversations.db import run_db
from conversations.models import LIVE, ApiCall, BudgetWindow, Conversation, Draft, Turn
from conversations.runtime.supervisor import Supervisor
from conversations.turns import turns
from tests.support import people_and_turns, stored_turns


@asynccontextmanager
async def supervising(*, is_alone: bool = True) -> AsyncIterator[Supervisor]:
    """Run a supervisor; turns that still run at the end are interrupted."""
    supervisor = Supervisor()
    await supervisor.start(is_alone=is_alone)
    try:
        yield supervisor
    finally:
        await supervisor.drain(0)


async def queue(text: str, conversation: Conversation | None = None) -> Turn:
    """Store a prompt, by default in a new conversation of a new person."""
    if conversation is not None:
        return await run_db(
            turns.send_prompt, conversation=conversation, text=text, client_id=uuid4()
        )

    def start() -> Turn:
        return people_and_turns.queued(people_and_turns.person(f"p{uuid4().hex[:8]}"), text)

    return await run_db(start)


async def until(happened: Callable[[], bool], seconds: float = 120) -> None:
    """Wait until a condition on the database holds."""
    deadline, pause = time.monotonic() + seconds, 0.01
    while not await run_db(happened):
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(pause)
        # Polling all the time would take processor time from the work waited for.
        pause = min(0.05, pause * 2)


async def ended(turn: Turn, seconds: float = 120) -> Turn:
    """Wait for the end of a turn."""
    await until(lambda: not Turn.objects.filter(pk=turn.pk, state__in=LIVE).exists(), seconds)
    return await run_db(Turn.objects.select_related("conversation").get, pk=turn.pk)


async def run(supervisor: Supervisor, text: str, conversation: Conversation | None = None) -> Turn:
    turn = await queue(text, conversation)
    supervisor.wake(turn.pk)
    return await ended(turn)


def answer_text(turn: Turn) -> str:
    """Return the text of a turn's answers."""
    rows = turn.messages.filter(kind="answer").order_by("seq")
    blocks = [block for row in rows for block in wire.decode(row.content)]
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


def unrecorded(emulator: EmulatorServer) -> list[str]:
    """Return the requests to the API that no call accounts for."""
    known = set(ApiCall.objects.values_list("body_digest", flat=True))
    sent = [row.body.decode() for row in emulator.emulator.log if row.path == "/v1/messages"]
    return [body[:200] for body in sent if wire.digest(body) not in known]


async def accounted(emulator: EmulatorServer) -> None:
    """Check that every request has its call, and that nothing is held or half written."""
    assert await run_db(unrecorded, emulator) == []
    assert await run_db(lambda: BudgetWindow.objects.filter(held__gt=0).count()) == 0
    assert await run_db(Draft.objects.count) == 0


def is_valid(conversation: Conversation) -> None:
    """Check that a next message may follow the stored ones."""
    from conversations.context.view import rules
    from conversations.context.view.view import Message
    from conversations.log.turn_state import load_state

    view = load_state(Conversation.objects.get(pk=conversation.pk), stored_turns.MODEL).view
    rules.check_rules(view.append(Message.parse(10_000, "prompt", '[{"type":"text","text":"On"}]')))
