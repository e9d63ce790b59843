"""Tools within turns: many at once, one that never answers, one that is huge, one that is new."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations.context.view import wire
from conversations.db import run_db
from conversations.live import turn_stream
from conversations.models import Draft, Message, ToolCall, Turn
from conversations.toolbox.tool_access import switch_tools
from conversations.web.chat import EXAMPLES
from tests.support.open_pages import opened, shown
from tests.support.running_turns import answer_text, ended, is_valid, queue, run, supervising
from tests.tools.examples import add_example
from tools.framework import execute as executing
from tools.framework.registry import TOOLS
from tools.framework.tool import Tool, ToolContext, ToolResult

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
HUGE = 50_000_000


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorServer]:
    with server.start(pace=0, record=True) as running:
        yield running


@pytest.fixture(autouse=True)
def _served(emulator: EmulatorServer, settings: Any) -> None:
    emulator.emulator.reset()
    settings.ANTHROPIC_BASE_URL = emulator.url


Body = Callable[[ToolContext], Awaitable[ToolResult]]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[Body], None]:
    """Let the tool that tells the time do something else."""

    def act(body: Body) -> None:
        async def instead(context: ToolContext, _arguments: dict[str, Any]) -> ToolResult:
            return await body(context)

        own = replace(TOOLS["current_time"], run=instead, timeout=300)
        monkeypatch.setitem(TOOLS, "current_time", own)

    return act


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the first call for the time little time, and no other: a busy machine is slow."""
    plain = executing._wait_until_done
    begun: list[str] = []

    async def ends(call: asyncio.Task[Any], own: Tool) -> bool:
        begun.append(own.name)
        is_first = own.name == "current_time" and begun.count(own.name) == 1
        return await plain(call, replace(own, timeout=0.2) if is_first else own)

    monkeypatch.setattr(executing, "_wait_until_done", ends)


@pytest.fixture
def numbered(monkeypatch: pytest.MonkeyPatch, hurried: None) -> ContextVar[int]:
    """Number the calls for the time as they begin; their threads may start in any order."""
    number: ContextVar[int] = ContextVar("number")
    numbers, begun = count(1), deque[str]()
    run, wait = executing.run_in_tool_thread, executing._wait_until_done

    async def run_numbered(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        if begun.popleft() == "current_time":
            number.set(next(numbers))
        return await run(work)

    async def note(call: asyncio.Task[Any], own: Tool) -> bool:
        # It is noted before the task of the call begins.
        begun.append(own.name)
        return await wait(call, own)

    monkeypatch.setattr(executing, "run_in_tool_thread", run_numbered)
    monkeypatch.setattr(executing, "_wait_until_done", note)
    return number


def results(turn: Turn) -> list[dict[str, Any]]:
    row = Message.objects.get(turn=turn, kind="results")
    found: list[dict[str, Any]] = wire.decode(row.content)
    return found


@pytest.mark.parametrize("text", [str(text) for text in EXAMPLES])
async def test_each_suggested_first_message_succeeds(text: str) -> None:
    async with supervising() as supervisor:
        turn = await run(supervisor, text)
    assert turn.state == "done"
    assert [block.get("is_error", False) for block in await run_db(results, turn)] == [False]


async def test_many_calls_are_answered_in_order_whatever_some_of_them_do(
    clock: Callable[[Body], None], settings: Any, numbered: ContextVar[int]
) -> None:
    running, lock = 0, threading.Lock()
    most, refused = [0], list[int]()

    @contextmanager
    def counted() -> Iterator[None]:
        nonlocal running
        with lock:
            running += 1
            most.append(running)
        try:
            yield
        finally:
            with lock:
                running -= 1

    async def odd(_: ToolContext) -> ToolResult:
        number = numbered.get()
        if number == 1:
            # It does not end when it is told to, either.
            while True:
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    refused.append(number)
        with counted():
            match number:
                case 2:
                    return ToolResult("x" * HUGE)
                case 3:
                    raise RuntimeError("on purpose")
                case 4:
                    return ToolResult([{"type": "text", "text": "a"}] * 100_000)
            await asyncio.sleep(0.01)
            return ToolResult(f"time {number}")

    clock(odd)
    settings.AGENTWEB_MAX_PARALLEL_TOOLS = 4
    async with supervising() as supervisor:
        turn = await run(supervisor, "Use 25 tools")
    assert refused == [1]
    assert (turn.state, turn.error_code) == ("done", "")
    calls = await run_db(lambda: list(ToolCall.objects.filter(turn=turn).select_related("output")))
    found = await run_db(results, turn)
    assert [each["tool_use_id"] for each in found] == [call.tool_use_id for call in calls]
    assert len(found) == 25
    failed = [each for each in found if each.get("is_error")]
    assert sorted(str(each["content"])[:34] for each in failed) == [
        "The tool current_time did not fini", "The tool current_time failed (Runt",
    ]  # fmt: skip
    assert sum(call.state == "ok" for call in calls) == 23
    times = [each["content"] for each in found[::2] if str(each["content"]).startswith("time")]
    assert sorted(times) == sorted(f"time {number}" for number in range(5, 14))
    assert max(most) <= 4
    # What is huge is bounded, and its true size is on record.
    (large,) = [call for call in calls if call.details.get("bytes")]
    assert large.details["bytes"] == HUGE
    assert large.output is not None
    assert len(large.output.text) < 1_100_000
    await run_db(is_valid, turn.conversation)


async def test_the_readme_s_tool_appears_in_the_chat_with_its_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: EmulatorServer
) -> None:
    add_example(tmp_path, monkeypatch)
    async with supervising() as supervisor:
        turn = await run(supervisor, 'Call the tool roll_dice with {"sides": 2}')
    assert turn.state == "done"
    sent = json.loads(emulator.emulator.log[0].body)
    assert sent["tools"][-1]["name"] in ("roll_dice", "web_search")
    (result,) = await run_db(results, turn)
    assert result["content"] in ("1", "2")

    def page() -> str:
        client = Client()
        client.force_login(turn.conversation.owner)
        html: str = client.get(f"/c/{turn.conversation.public_id}/").content.decode()
        return html

    html = await run_db(page)
    assert "Used Roll dice" in " ".join(re.sub(r"<[^>]+>", "", html).split())
    assert f'<pre tabindex="0">{result["content"]}</pre>' in html


async def test_a_tool_that_was_switched_off_is_not_offered_and_its_calls_stay_readable(
    emulator: EmulatorServer,
) -> None:
    async with supervising() as supervisor:
        turn = await run(supervisor, "List my files")
        talk = turn.conversation
        await run_db(switch_tools, conversation_id=talk.pk, on=[], off=["list_files"])
        again = await run(supervisor, "List my files", talk)
    assert "not offered to me" in await run_db(answer_text, again)
    tools = [each["name"] for each in json.loads(emulator.emulator.log[-1].body)["tools"]]
    assert "list_files" not in tools
    await run_db(is_valid, talk)

    def page() -> str:
        client = Client()
        client.force_login(talk.owner)
        html: str = client.get(f"/c/{talk.public_id}/").content.decode()
        return html

    assert "Listed the files of the workspace" in await run_db(page)


async def test_a_tool_says_how_far_it_is_live_bounded_and_nowhere_stored(
    clock: Callable[[Body], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_stream, "PROGRESS_SECONDS", 0.05)
    after: list[Any] = []
    words, began = "<img src=x onerror=alert(1)> " + "far " * 9_000, time.monotonic()

    async def long(context: ToolContext) -> ToolResult:
        for _ in range(20_000):
            context.progress(words)
        await asyncio.sleep(0.2)
        context.progress(0.25)
        await asyncio.to_thread(context.progress, "page\n3 of\t9 \ud800")
        await asyncio.sleep(0.2)
        context.progress(7.0)
        after.append(context.progress)
        await asyncio.sleep(0.2)
        return ToolResult("done")

    clock(long)
    turn = await queue("What time is it?")
    with opened(turn.conversation_id, turn.conversation.version) as topic:
        async with supervising() as supervisor:
            supervisor.wake(turn.pk)
            done = await ended(turn)
            after[0]("too late")
        frames = [frame for frame in shown(topic) if frame.startswith('<span class="said"')]
    assert done.state == "done"
    call = await run_db(ToolCall.objects.get, turn=turn)
    assert all(f'id="said-{call.tool_use_id}"' in frame for frame in frames)
    text = "".join(frames)
    # However long it took: one for each interval, and those at the ends.
    assert 2 <= len(frames) <= 2 + (time.monotonic() - began) / 0.05 < 10_000
    assert "&lt;img src=x onerror" in text
    assert "<img" not in text
    assert max(map(len, frames)) < 700
    assert "<bdi>page 3 of 9 \ufffd</bdi>" in text
    assert ">100 %" in text or 'value="100"' in text
    assert "too late" not in text
    assert topic.progress == {}
    # The card says since when it runs, and what it said comes again with it.
    assert any("data-elapsed" in frame for frame in shown(topic))
    kept = await run_db(lambda: [call.details, *Draft.objects.values_list("text", flat=True)])
    assert kept == [{}]
