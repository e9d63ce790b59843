"""What many cases begin with."""

from __future__ import annotations

import asyncio

from tests.rig.client import Chat
from tests.rig.processes import Process
from tests.rig.rigs import Rig

#: The end of a message whose answer comes in many pieces.
LONG = "answer in 150 words emulator:pace=0.001"
#: Deltas behind which some of its text is there.
SOME = 60


async def begun(rig: Rig, text: str = "Hello") -> Chat:
    """Give the conversation of a new person, its first answer done."""
    chat = await rig.person().begin(text)
    assert await chat.ended() == "done"
    return chat


async def works(rig: Rig, chat: Chat, seconds: float = 120) -> None:
    """Say something and be answered, by processes that nobody restarted; then the oracle."""
    pids = [process.pid for process in rig.processes]
    assert await chat.say("Are you there?", seconds=seconds) == "done"
    assert [process.pid for process in rig.processes if process.is_running] == pids
    await rig.check()


async def kill(rig: Rig, chat: Chat) -> None:
    """Kill who runs the turn, and start the next one."""
    await asyncio.to_thread(replace, rig, rig.runner(chat))


def replace(rig: Rig, process: Process) -> Process:
    process.kill()
    return rig.restart(process)
