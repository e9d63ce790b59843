"""A recorded answer with thinking, text and two tool calls, cut at every byte of its stream.

No incomplete answer counts, no tool runs on partial input, the bill is the API's to the
micro-dollar, and the conversation continues. CI takes one byte in 73, on PostgreSQL one in 219,
since the bytes are the same; all of them are

    AGENTWEB_TEST_SWEEP=1 manage.py test tests/faults/test_every_offset.py

and AGENTWEB_TEST_DATABASE=postgres runs them on PostgreSQL.
"""

from __future__ import annotations

import faulthandler
import json
import os
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from agentweb.emulator import server
from agentweb.emulator.app import create_app
from agentweb.emulator.scenes.scene import Reply, Text, ToolUse, say
from agentweb.emulator.scenes.view import Request
from agentweb.emulator.server import EmulatorServer
from conversations.context.view import wire
from conversations.db import run_db
from conversations.models import ApiCall, ApiResult, Conversation, ToolCall, Turn
from conversations.runtime.adapters import workspace_for
from conversations.runtime.supervisor import Supervisor
from conversations.turns import turns
from tests.faults.oracle import check_bills, check_rows
from tests.support import people_and_turns
from tests.support.environment import DATABASE
from tests.support.running_turns import supervising

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
STRIDE_IN_CI = 73 if DATABASE == "sqlite" else 219
STRIDE = int(os.environ.get("AGENTWEB_TEST_SWEEP") or STRIDE_IN_CI)
FILES = {"one.txt": "First, ÄÖ.\n", "two.txt": "2\n"}
PROMPT = "Write both files."


def scene(request: Request) -> Reply:
    """Think, write text and two files; then say that it is done."""
    if request.prompt != PROMPT:
        return say("Here I am.")
    if request.after_results:
        return say("Both are written.")
    calls = [ToolUse("write_file", {"path": name, "content": FILES[name]}) for name in FILES]
    return Reply((Text("Both now."), *calls), thinking="Two files.")


@pytest.fixture(scope="module")
def writer() -> Iterator[EmulatorServer]:
    with server.start(app=create_app(scenes=[scene], record=True)) as running:
        yield running


async def run(supervisor: Supervisor, turn: Turn) -> Turn:
    supervisor.launch(turn.pk)
    await supervisor._tasks[turn.pk]
    return await run_db(Turn.objects.get, pk=turn.pk)


def queued_turn() -> Turn:
    return people_and_turns.queued(people_and_turns.person(uuid4().hex), PROMPT)


async def recorded(supervisor: Supervisor, emulator: EmulatorServer) -> bytes:
    """Return the bytes of the answer's stream, the same in every run."""
    emulator.emulator.reset()
    assert (await run(supervisor, await run_db(queued_turn))).state == "done"
    sent = emulator.emulator.log[0]
    kinds = {"anthropic-version": sent.headers["anthropic-version"]}
    kinds["x-api-key"] = "built-in-emulator"
    emulator.emulator.reset()
    async with httpx2.AsyncClient(trust_env=False) as client:
        answer = await client.post(f"{emulator.url}/v1/messages", content=sent.body, headers=kinds)
    return answer.content


def check(first: Turn, heard: bytes) -> None:
    """Check that no tool ran on partial input, and that a done turn has its full answer."""
    results = list(ApiResult.objects.filter(call__turn=first).order_by("pk"))
    is_whole = b'"type":"message_stop"}' in heard
    assert (results[0].status == "complete") <= is_whole
    assert (first.state == "done") == (results[-1].status == "complete")
    calls = list(ToolCall.objects.filter(turn=first))
    ran = any(row.status == "complete" for row in results)
    workspace = workspace_for(first.conversation.owner_id)
    written = {each.path: workspace.read(each.path).decode() for each in workspace.entries()}
    assert written == (FILES if ran else {})
    assert [(row.state, json.loads(row.input)["content"]) for row in calls] == [
        ("ok", text) for text in FILES.values() if ran
    ]
    if first.state == "failed":
        assert first.error_code in ("cut", "unreachable", "protocol_error")
        assert len(results) == 1


async def test_cut_at_any_byte_nothing_is_done_by_halves_and_the_talk_goes_on(
    writer: EmulatorServer, settings: Any
) -> None:
    if STRIDE < STRIDE_IN_CI:
        # This test takes longer than the limit for one that hangs.
        faulthandler.cancel_dump_traceback_later()
    settings.ANTHROPIC_BASE_URL = writer.url
    settings.AGENTWEB_MAX_BACKOFF_SECONDS = 0
    ends: dict[str, int] = {}
    async with supervising() as supervisor:
        answer = await recorded(supervisor, writer)
        assert len(answer) > 1_500
        for offset in [*range(0, len(answer), STRIDE), len(answer) - 1, len(answer)]:
            writer.emulator.reset()
            writer.emulator.ordered_faults.append(f"cut_bytes:{offset}")
            first = await run(supervisor, await run_db(queued_turn))
            ends[first.state] = ends.get(first.state, 0) + 1
            await run_db(check, first, answer[:offset])
            again = await run_db(next_turn, first.conversation_id)
            assert (await run(supervisor, again)).state == "done"
            assert {row.status for row in writer.emulator.log} == {200}
            await run_db(check_recorded, writer, first.conversation_id)
            ours = ApiResult.objects.filter(call__conversation=first.conversation_id)
            await run_db(check_bills, writer, ours)
    assert set(ends) == {"done", "failed"}
    await run_db(check_rows)


def check_recorded(emulator: EmulatorServer, conversation_id: int) -> None:
    calls = ApiCall.objects.filter(conversation_id=conversation_id)
    sent = {wire.digest(row.body.decode()) for row in emulator.emulator.log}
    assert sent <= set(calls.values_list("body_digest", flat=True))


def next_turn(conversation_id: int) -> Turn:
    conversation = Conversation.objects.get(pk=conversation_id)
    return turns.send_prompt(conversation=conversation, text="Are you there?", client_id=uuid4())
