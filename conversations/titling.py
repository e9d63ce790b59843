"""Naming conversations: one small call of the model, when the first answer is stored and shown.

It belongs to no turn that anybody waits for: a stop of the server ends it, its failure is nobody's,
and its cost is recorded like that of every call.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from conversations import titles
from conversations.adapters import TurnCalls
from conversations.attempt import ask_for_title
from conversations.claude import Claude
from conversations.context.envelope import envelope
from conversations.context.view import Message
from conversations.db import db
from conversations.events import MeterMoved, TitleChanged
from conversations.ports import Ending, Sending, Sent
from conversations.queries.titles import Opening, opening
from conversations.services import titles as services
from conversations.services.leases import Lease
from conversations.stage import announce
from conversations.switch import Stopped, Switch

logger = logging.getLogger("agentweb.turns")
#: Seconds a stopped call has to write down how it ended.
LAST_SECONDS = 5


class TitleCalls(TurnCalls):
    """The Calls and Model ports of a turn that is over."""

    async def open(self, sending: Sending) -> Sent:
        sent = await db(services.open_title, lease=self._lease, sending=sending)
        self._begin()
        return sent

    async def close(self, sent: Sent, ending: Ending) -> Message | None:
        await db(services.close_title, call_id=sent.call, ending=ending, timing=self._timing())
        return None


@dataclass(frozen=True, slots=True)
class TitleLine:
    """What the call for a title needs."""

    calls: TitleCalls
    model: TitleCalls
    switch: Switch


class Titles:
    """The titles on their way in this process."""

    def __init__(self) -> None:
        self._asking: dict[asyncio.Task[None], Switch] = {}

    def begin(self, lease: Lease, claude: Claude) -> None:
        """Name the conversation of an ended turn, if nobody has."""
        switch = Switch()
        task = asyncio.create_task(_name(lease, claude, switch), name=f"title-{lease.turn_id}")
        self._asking[task] = switch
        task.add_done_callback(lambda done: self._asking.pop(done, None))

    async def drain(self) -> None:
        """Stop what is on its way; no title is worth waiting for."""
        for switch in self._asking.values():
            switch.request("shutdown")
        if self._asking:
            await asyncio.wait(list(self._asking), timeout=LAST_SECONDS)


async def _name(lease: Lease, claude: Claude, switch: Switch) -> None:
    try:
        found = await db(opening, lease.turn_id)
        if found is None:
            return
        calls = TitleCalls(lease, claude)
        title = await _ask(found, TitleLine(calls, calls, switch))
        is_named = False
        if title:
            name, key = services.name_conversation, lease.conversation_id
            is_named = await db(name, conversation_id=key, title=title)
        if is_named:
            await announce(lease.conversation_id, TitleChanged())
        await announce(lease.conversation_id, MeterMoved())
    except Stopped:
        logger.info("turn %s: its title was not waited for", lease.turn_id)
    except Exception:
        # The title stays as it was; what was asked for is closed by the sweep.
        logger.exception("turn %s: the conversation was not named", lease.turn_id)


async def _ask(found: Opening, line: TitleLine) -> str:
    asked = envelope(
        model=found.model,
        max_tokens=titles.MAX_TOKENS_THINKING if found.thinks else titles.MAX_TOKENS,
        system=titles.SYSTEM,
        cached=False,
    )
    return await ask_for_title(line, asked, titles.quoted(found.prompt, found.answer))
