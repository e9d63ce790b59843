"""Conversations that the product itself runs, against the emulator: a record that is true.

Each is of a person of its own, with rounds of tools, thinking, long results that are compacted and
summaries, under an allowance that is never reached. Settings and key come from the environment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import cycle, islice
from uuid import uuid4

from agentweb.bench.own_database import make_person
from conversations.conf import conf
from conversations.db import run_db
from conversations.library.access import load_conversation
from conversations.models import Budget, ToolRule
from conversations.runtime.adapters import workspace_for
from conversations.runtime.supervisor import Supervisor
from conversations.turns import turns

#: What is asked in turn: rounds of tools, thinking, plain answers, other scripts.
QUESTIONS = (
    "Which files are there? emulator:rounds=tool,say,tool,think,tool,tool",
    "Was weißt du über Öfen, naïve Häuser und 日本語? Answer in 120 words",
    "And which of them are new? emulator:rounds=tool+tool,say,tool,tool,tool",
    "Write the table of the orders with \U0001f600 and \u2028 in 40 words",
)
#: In the workspace of each person, and micro-dollars of the allowance.
FILES, LIMIT = 24, 10**12


def play_conversations(count: int, length: int) -> list[int]:
    """Run conversations of `length` turns one after the other; return their keys."""
    # The emulator then calls the tool whose results are long.
    ToolRule.objects.create(tool="current_time")
    Budget.objects.create(scope="site", limit=LIMIT)
    owners = [_make_owner(at) for at in range(count)]
    return asyncio.run(_play_all(owners, length))


def _make_owner(number: int) -> int:
    user = make_person(f"original-{number}")
    files = workspace_for(user.pk)
    for at in range(FILES):
        files.write(f"orders/{at:03} größer.txt", b"4711\n" * at)
    return user.pk


async def _play_all(owners: list[int], length: int) -> list[int]:
    supervisor = Supervisor()
    await supervisor.start(is_alone=True)
    try:
        return [
            await _play(supervisor, owner, list(_list_prompts(at, length)))
            for at, owner in enumerate(owners)
        ]
    finally:
        await supervisor.drain(0)


async def _play(supervisor: Supervisor, owner: int, prompts: list[str]) -> int:
    first = await run_db(
        turns.start_conversation,
        owner_id=owner, model=conf.model, text=prompts[0], client_id=uuid4(),
    )  # fmt: skip
    await asyncio.to_thread(supervisor.work_off, first.pk)
    for text in prompts[1:]:
        conversation = await run_db(load_conversation, first.conversation_id)
        turn = await run_db(
            turns.send_prompt, conversation=conversation, text=text, client_id=uuid4()
        )
        await asyncio.to_thread(supervisor.work_off, turn.pk)
    return first.conversation_id


def _list_prompts(number: int, length: int) -> Iterator[str]:
    for at, text in enumerate(islice(cycle(QUESTIONS), number, number + length)):
        yield f"{number + 1}.{at + 1}: {text}"
