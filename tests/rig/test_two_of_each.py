"""Two web processes and two workers on one PostgreSQL and Redis; any of them dies in mid-answer."""

from __future__ import annotations

import asyncio

import pytest

from tests.rig.installations import Installation
from tests.rig.model import Model, saying
from tests.rig.scenes import LONG, SOME, replace, started_chat

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize(("kind", "at"), [("webs", 0), ("webs", 1), ("workers", 0), ("workers", 1)])
@pytest.mark.only_mode("scaled", "embedded, there is one process")
async def test_whichever_dies_every_page_ends_equal_to_what_is_stored(
    rig: Installation, model: Model, kind: str, at: int
) -> None:
    chats = [await started_chat(rig) for _ in range(3)]
    tabs = [await chat.person.open(chat.path) for chat in chats]
    held = model.hold(saying("Two of each"), SOME, times=len(chats))
    for chat in chats:
        await chat.send(f"Two of each: {LONG}")
    await held.came(len(chats))
    victim = getattr(rig, kind)[at]
    dead = [chat for chat in chats if rig.runner(chat) is victim]
    await asyncio.to_thread(replace, rig, victim)
    held.release()
    for chat, tab in zip(chats, tabs, strict=True):
        end = "interrupted" if chat in dead else "done"
        assert await chat.ended(2, seconds=rig.lease + 90) == end
        assert await tab.ended(2) == end
    assert len(dead) < len(chats) or kind == "workers"
    # Every tab shows exactly what is stored: no gap, nothing twice.
    await rig.check()
    for chat in dead:
        await chat.retry(2)
        await chat.shows(lambda chat=chat: chat.number == 3)
        assert await chat.ended(3) == "done"
    await rig.check()
