"""What a turn, its page and its text leave in memory at their end: nothing to collect.

Objects that refer to each other stay until the next full collection, which is rare, and with them
the whole answer: memory grew for minutes, and then stayed as large.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agentweb.emulator import server
from conversations.models import Conversation
from tests.support.running_turns import ended, queue, supervising
from tests.web.tabs import connected

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
#: Rows that refer to each other, because Django caches both ends of a relation.
ROWS = "conversations.models."


@contextmanager
def counting_garbage() -> Iterator[Counter[str]]:
    """Count what only a collection frees, by class, of all that is made inside."""
    found: Counter[str] = Counter()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found.update(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
        gc.unfreeze()


def ours(found: Counter[str]) -> dict[str, int]:
    named = ("agentweb.edge.", "conversations.", "tools.")
    return {
        name: count
        for name, count in found.items()
        if name.startswith(named) and not name.startswith(ROWS)
    }


async def test_a_turn_and_its_page_leave_nothing_to_collect(settings: Any) -> None:
    with server.start(pace=0.0) as emulator:
        settings.ANTHROPIC_BASE_URL, settings.AGENTWEB_TITLE_MODEL = emulator.url, "off"
        async with supervising() as supervisor:
            conversation = await _answer(supervisor, None)
            with counting_garbage() as found:
                await _answer(supervisor, conversation)
    assert ours(found) == {}


async def _answer(supervisor: Any, conversation: Conversation | None) -> Conversation:
    turn = await queue("Answer in 300 words of Markdown", conversation)
    async with connected(turn.conversation) as page:
        supervisor.launch(turn.pk)
        while 'data-state="done"' not in str(await page.receive_from(timeout=60)):
            pass
    return (await ended(turn)).conversation
