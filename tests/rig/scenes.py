"""Opening steps that many cases share."""

from __future__ import annotations

import asyncio

from agentweb.emulator.script import Script, after, call, say, when
from tests.rig.client import Chat
from tests.rig.installations import Installation
from tests.rig.processes import Process
from tests.support.paying_summaries import SUMMARY_PAYS

#: The end of a message whose answer has many deltas.
LONG = "answer in 150 words emulator:pace=0.001"
#: Deltas after which some of its text is shown.
SOME = 60
TOOLS = ("peek", "put", "fire")
#: The script of the model for messages that ask for a toy tool.
SCRIPT = Script([
    when("please both", call("put", at="here"), call("fire", at="there")),
    *(when(f"please {name}", call(name, at="here")) for name in TOOLS),
    *(after(name, say("It says: {result}")) for name in (*TOOLS, "gorge", "block")),
    when("please gorge", call("gorge", megabytes=8_000)),
    when("please block", call("block")),
    # The others need no approval; this one has it given.
    when("please post", call("post", to="a@b.example", text="Hello")),
    after("post", say("It says: {result}")),
])  # fmt: skip
#: Small windows, so that a few messages are summarised.
SMALL = {
    **SUMMARY_PAYS,
    "AGENTWEB_POLICY": "classic",
    "AGENTWEB_INPUT_TOKEN_BUDGET": "3000",
    "AGENTWEB_COMPACTION_THRESHOLD_TOKENS": "3500",
    "AGENTWEB_PROTECTED_TAIL_MESSAGES": "2",
}


async def started_chat(rig: Installation, text: str = "Hello") -> Chat:
    """Create a person with a conversation whose first answer is done."""
    chat = await rig.person().begin(text)
    assert await chat.ended() == "done"
    return chat


async def works(rig: Installation, chat: Chat, seconds: float = 120) -> None:
    """Send a message and get an answer without restarted processes; then check everything."""
    pids = [process.pid for process in rig.processes]
    assert await chat.say("Are you there?", seconds=seconds) == "done"
    assert [process.pid for process in rig.processes if process.is_running] == pids
    await rig.check()


async def kill(rig: Installation, chat: Chat) -> None:
    """Kill the process that runs the turn, and start the next one."""
    await asyncio.to_thread(replace, rig, rig.runner(chat))


def replace(rig: Installation, process: Process) -> Process:
    process.kill()
    return rig.restart(process)
