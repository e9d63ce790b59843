"""How far a reader must go: packages and files that a prompt with one tool call runs through."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from asgiref.sync import SyncToAsync
from django.test import AsyncClient

from agentweb.emulator import server
from conversations import db
from conversations.agent import prepare
from conversations.models import Conversation, ToolCall, Turn
from tests.support import people_and_turns
from tests.support.running_turns import ended, supervising, until
from tests.web.tabs import connected, session_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
ROOT = Path(__file__).resolve().parents[2]
TITLE_MODEL = "claude-haiku-5-5"
#: 62 packages and 172 files before the code was ordered by domain, the engine apart.
MOST_PACKAGES, MOST_FILES = 31, 168


@contextmanager
def seen_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Collect the files whose functions run, in all threads of the application."""
    found: set[str] = set()

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            found.add(frame.f_code.co_filename)

    # Threads that run already would not be watched: all pools get new ones.
    pools = [(db, name) for name, pool in vars(db).items() if isinstance(pool, ThreadPoolExecutor)]
    for owner, name in (*pools, (SyncToAsync, "single_thread_executor")):
        size = getattr(owner, name)._max_workers
        new = ThreadPoolExecutor(size, initializer=lambda: sys.setprofile(look))
        monkeypatch.setattr(owner, name, new)
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def of_the_product(found: set[str]) -> set[Path]:
    """Keep the product's own files; the emulator stands in for somebody else's."""
    paths = {Path(name).relative_to(ROOT) for name in found if name.startswith(f"{ROOT}/")}
    tops = {"agentweb", "conversations", "tools"}
    return {one for one in paths if one.parts[0] in tops and one.parts[1] != "emulator"}


async def test_a_prompt_with_a_tool_call_stays_in_few_packages(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    # The engine prepares in a thread that is not watched, whatever the size of the conversation.
    monkeypatch.setattr(prepare, "_AT_ONCE", 0)
    user = await db.run_db(people_and_turns.person)
    client = AsyncClient()
    await client.aforce_login(user)
    with server.start(pace=0) as emulator:
        settings.ANTHROPIC_BASE_URL, settings.AGENTWEB_TITLE_MODEL = emulator.url, TITLE_MODEL
        first = await client.post("/c/start/", {"text": "Hello"})
        assert first.status_code == 302
        turn = await db.run_db(Turn.objects.select_related("conversation").get)
        session = await db.run_db(session_of, user)
        async with supervising() as supervisor, connected(turn.conversation, session) as page:
            supervisor.wake(turn.pk)
            await ended(turn)
            # The title of the first turn is none of the second's work.
            await until(Conversation.objects.filter(titled_by="model").exists)
            while supervisor._side_calls._running:
                await asyncio.sleep(0.01)
            with seen_files(monkeypatch) as found:
                path = f"/c/{turn.conversation.public_id}/send/"
                await client.post(path, {"text": "What time is it in Tokyo?"})
                second = await db.run_db(Turn.objects.select_related("conversation").get, number=2)
                supervisor.wake(second.pk)
                assert (await ended(second)).state == "done"
                while f'id="turn-{second.number}"' not in await page.receive_from(timeout=60):
                    pass
    assert await db.run_db(ToolCall.objects.filter(turn=second, state="ok").count) == 1
    files = of_the_product(found)
    packages = {one.parent for one in files}
    names = "\n".join(sorted(map(str, files)))
    assert len(packages) <= MOST_PACKAGES, f"{len(packages)} packages\n{names}"
    assert len(files) <= MOST_FILES, f"{len(files)} files\n{names}"
