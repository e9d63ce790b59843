"""Through the whole app: a summary reads the last request from the prompt cache, as recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations.context.view import wire
from conversations.db import run_db
from conversations.log.rebuild import rebuild_request
from conversations.models import ApiModel, ApiResult, Transformation
from tests.support.running_turns import is_valid, run, supervising

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.fixture
def emulator(settings: Any) -> Iterator[EmulatorServer]:
    with server.start(pace=0, record=True) as running:
        settings.ANTHROPIC_BASE_URL = running.url
        yield running


async def test_a_summary_is_read_from_the_cache_and_its_bill_is_exact(
    emulator: EmulatorServer,
) -> None:
    await run_db(lambda: ApiModel.objects.update(window=64_000))
    async with supervising() as supervisor:
        turn = await run(supervisor, "We begin at https://e.org/start. Use 2 tools")
        chat = turn.conversation
        # A summary pays once so many calls have carried what it replaces.
        for number in range(42):
            turn = await run(supervisor, f"Part {number}: " + "some words " * 500, chat)
            assert turn.state == "done", turn.error_text

    def seen() -> tuple[list[ApiResult], list[Transformation]]:
        rows = ApiResult.objects.filter(call__conversation=chat).select_related("call__envelope")
        changes = Transformation.objects.filter(conversation=chat, kind="summary")
        return list(rows.order_by("pk")), list(changes.select_related("summary_call"))

    results, changes = await run_db(seen)
    asked = next(row for row in results if row.call.purpose == "summary")
    assert [one.outcome for one in changes] == ["applied"]
    before = results[results.index(asked) - 1]
    whole = (before.input_tokens or 0) + before.cache_read_tokens + before.cache_write_tokens
    # All of the last request came from the cache; only the order is new.
    assert asked.cache_read_tokens == whole - (before.input_tokens or 0)
    assert (asked.cache_write_tokens or 0) + (asked.input_tokens or 0) < 1_000
    first, last = [
        wire.decode((await run_db(rebuild_request, row.call)).body) for row in (before, asked)
    ]
    assert last["messages"][:-1] == first["messages"]
    assert {k for k in first if k != "messages" and first[k] != last[k]} <= {"max_tokens"}
    costs = sum(row.cost_micros for row in results)
    assert costs == emulator.emulator.billed_micros > 0
    await run_db(is_valid, chat)
