"""Titles of conversations: one small side call after the first answer is stored and shown.

It runs in the background, behind the words and the ends of answers: if it fails the title stays
unchanged, and its cost is recorded like any other.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from conversations.agent.call import request_title
from conversations.agent.events import MeterMoved, TitleChanged
from conversations.agent.ports import Sending, Sent
from conversations.agent.stop import Stopped, Switch
from conversations.agent.title import MAX_TOKENS, SYSTEM, quote_beginning
from conversations.db import run_db_late
from conversations.live.publish import announce
from conversations.log.leases import Lease
from conversations.runtime.job import build_quiet_envelope
from conversations.runtime.side_calls import SideCallPorts, SideCalls
from conversations.turns import titles
from conversations.turns.titles import Opening, find_opening

if TYPE_CHECKING:
    from conversations.claude.client import Claude

logger = logging.getLogger("agentweb.turns")


class TitleCalls(SideCalls):
    async def open(self, sending: Sending) -> Sent:
        sent = await run_db_late(titles.open_title_call, lease=self._lease, sending=sending)
        self._begin()
        return sent


async def write_title(lease: Lease, claude: Claude, switch: Switch) -> None:
    """Write a title for the conversation of an ended turn, unless it has one."""
    try:
        found = await run_db_late(find_opening, lease.turn_id)
        if found is None:
            return
        calls = TitleCalls(lease, claude)
        title = await _ask_model(found, SideCallPorts(calls, calls, switch))
        is_named = False
        if title:
            store, key = titles.name_conversation, lease.conversation_id
            is_named = await run_db_late(store, conversation_id=key, title=title)
        named = [TitleChanged()] if is_named else []
        await announce(lease.conversation_id, *named, MeterMoved())
    except Stopped:
        logger.info("turn %s: its title was not waited for", lease.turn_id)
    except Exception:
        # The title stays as it was; the sweep closes the call.
        logger.exception("turn %s: the conversation was not named", lease.turn_id)


async def _ask_model(found: Opening, ports: SideCallPorts) -> str:
    envelope = build_quiet_envelope(model=found.model, max_tokens=MAX_TOKENS, system=SYSTEM)
    return await request_title(ports, envelope, quote_beginning(found.prompt, found.answer))
