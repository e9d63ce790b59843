"""What a tool may reach in a turn: held to its host once something private was read, pages kept."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from conversations.agent.answer import ToolUse
from conversations.db import run_db
from conversations.models import ToolCall
from conversations.runtime.adapters import PAGES, TurnTools
from conversations.turns.versions import edit_prompt
from tests.support import stored_turns
from tools.framework.registry import TOOLS
from tools.framework.toolset import Toolset

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


NO_TOOL = ToolUse("n", "nothing", "{}")


class Silent:
    """Progress that nobody watches."""

    def begin(self, _id: str) -> Any:
        return lambda _said: None

    def end(self, _id: str) -> None:
        return None


async def test_only_what_tells_somebody_is_held_and_only_after_private_reading() -> None:
    played = await run_db(stored_turns.played)
    tools: Any = TurnTools(played.lease, Toolset(TOOLS), partial(bool), Silent())  # type: ignore[arg-type]
    fetch = ToolUse("f", "fetch_url", '{"url":"https://good.example/"}')
    assert not (await tools._reach(fetch)).is_held_to_host
    await run_db(lambda: ToolCall.objects.filter(turn=played.turn).update(is_private=True))
    assert (await tools._reach(fetch)).is_held_to_host
    assert not (await tools._reach(ToolUse("t", "current_time", "{}"))).is_held_to_host
    assert not (await tools._reach(NO_TOOL)).is_held_to_host


async def test_a_person_has_one_cache_in_all_turns_and_none_of_another(settings: Any) -> None:
    settings.AGENTWEB_FETCH_CACHE_BYTES = 1_234
    ada, bea = await run_db(stored_turns.played), await run_db(stored_turns.played, "bea")
    caches = [
        find_pages() if (find_pages := (await tools._reach(NO_TOOL)).find_pages) else None
        for one in (ada, ada, bea)
        for tools in [TurnTools(one.lease, Toolset(TOOLS), partial(bool), Silent())]  # type: ignore[arg-type]
    ]
    assert caches[0] is caches[1] is PAGES.of(str(ada.user.pk), 1_234)
    assert caches[2] is not caches[0]
    assert caches[0] is not None
    assert caches[0].most == 1_234


async def test_the_recall_tool_reaches_the_shown_path_alone() -> None:
    played = await run_db(stored_turns.played)
    tools: Any = TurnTools(played.lease, Toolset(TOOLS), partial(bool), Silent())  # type: ignore[arg-type]
    use = ToolUse("toolu_2", "recall", '{"id":"msg_3"}')
    assert (await tools.run(use)).state == "ok"
    await run_db(partial(edit_prompt, turn=played.turn, text="Anew", client_id=uuid4()))
    done = await tools.run(use)
    assert (done.state, done.details["code"]) == ("error", "unknown_original")
