"""What a turn publishes by itself: an error there is nobody's to catch, and logged."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from agentweb.bench.tabs import BEAT
from conversations import rendering
from conversations.agent.events import (
    Event,
    MeterMoved,
    RoundChanged,
    RoundOpened,
    ToolMoved,
    TurnChanged,
    TurnClosed,
    TurnOpened,
)
from conversations.agent.ports import Finish, SearchesLimited, Sending
from conversations.claude.client import Claude, Deadlines
from conversations.context.view.envelope import build_envelope
from conversations.db import run_db
from conversations.live import turn_stream
from conversations.live.hub import Reader
from conversations.live.turn_stream import TurnDisplay
from conversations.live.watch import watch
from conversations.log.leases import Lease
from conversations.log.page_version import keep_own_steps
from conversations.models import Budget, Conversation
from conversations.runtime.adapters import TurnCalls
from conversations.toolbox.web_search import build_definition
from conversations.turns import turns
from tests.support import people_and_turns, stored_turns
from tests.web.fold import Page
from tests.web.tabs import connected, frame_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.mark.parametrize("event", [TurnOpened(1), ToolMoved("a", "half", 50)])
async def test_what_is_published_late_and_fails_is_logged(
    event: Event, monkeypatch: Any, caplog: Any
) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise OSError("no way to the pages")

    monkeypatch.setattr(turn_stream, "publish", fail)
    monkeypatch.setattr(turn_stream, "HELD_SECONDS", 0)
    caplog.set_level(logging.ERROR, "agentweb.turns")
    lease = await run_db(people_and_turns.started_turn)
    display = TurnDisplay(lease)
    try:
        if isinstance(event, ToolMoved):
            display._moved(event)
        else:
            await display.hold(event)
        async with asyncio.timeout(60):
            while not caplog.records:
                await asyncio.sleep(0.01)
    finally:
        display.close()
    (record,) = caplog.records
    assert f"turn {lease.turn_id}" in record.getMessage()
    assert "no way to the pages" in str(record.exc_info[1])


async def test_what_was_streamed_is_kept_to_be_shown_again_at_the_end() -> None:
    lease = await run_db(people_and_turns.started_turn)
    display = TurnDisplay(lease)
    display._topic.readers.add(Reader(display._topic))
    conversation = await run_db(Conversation.objects.get, pk=lease.conversation_id)
    try:
        await display.publish(RoundOpened(lease.number, 1))
        for words in ("Some **new**", " words\n\n", "- of one"):
            await display.grow(words, "")
        ending = TurnClosed(lease.number)
        await run_db(partial(display.render_next, ending, conversation=conversation))
    finally:
        display._topic.readers.clear()
        display.close()
    assert "<li>of one</li>" in rendering._streamed.pop("Some **new** words\n\n- of one")


async def test_what_a_stop_kept_from_being_streamed_is_rendered_at_the_end() -> None:
    lease = await run_db(people_and_turns.started_turn)
    display = TurnDisplay(lease)
    display._topic.readers.add(Reader(display._topic))
    conversation = await run_db(Conversation.objects.get, pk=lease.conversation_id)
    try:
        await display.publish(RoundOpened(lease.number, 1))
        growing = asyncio.create_task(display.grow("Words before a stop", ""))
        while not display._order.locked():
            await asyncio.sleep(0)
        # They wait for their draft.
        growing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await growing
        ending = TurnClosed(lease.number)
        await run_db(partial(display.render_next, ending, conversation=conversation))
    finally:
        display._topic.readers.clear()
        display.close()
    assert rendering.render_markdown("Words before a stop") == "<p>Words before a stop</p>\n"


async def test_the_beginning_of_a_turn_waits_for_the_call_that_is_being_opened(
    monkeypatch: Any,
) -> None:
    shown: list[tuple[Event, ...]] = []

    async def keep(_: int, *events: Event, **__: Any) -> None:
        shown.append(events)

    monkeypatch.setattr(turn_stream, "publish", keep)
    monkeypatch.setattr(turn_stream, "HELD_SECONDS", 0)
    display = TurnDisplay(await run_db(people_and_turns.started_turn))
    try:
        display.expect_next()
        await display.hold(TurnOpened(1))
        display.expect_next()
        for _ in range(5):
            await asyncio.sleep(0)
        assert shown == []
        await display.publish(TurnChanged(1))
        assert shown == [(TurnOpened(1), TurnChanged(1))]
    finally:
        display.close()


async def test_what_waits_for_a_call_is_shown_soon_if_only_fewer_searches_are_affordable() -> None:
    """The request is then prepared anew, which may take as long as a summary takes."""
    lease = await run_db(people_and_turns.started_turn)
    conversation = await run_db(read_conversation, lease)
    page, display = Page(), TurnDisplay(lease)
    claude = Claude(api_key="sk-ant-test", base_url=None, deadlines=Deadlines())
    calls = TurnCalls(lease, claude, display=display)
    try:
        async with connected(conversation) as found:
            page.take(await frame_of(found))
            sent = await run_db(people_and_turns.opened, lease)
            await run_db(stored_turns.close, lease, sent.call, people_and_turns.complete())
            await display.hold(RoundChanged(1, 1))
            with pytest.raises(SearchesLimited):
                await calls.open(await run_db(build_searching, lease))
            while "Here you are." not in page.text("turn-1"):
                page.take(await frame_of(found))
    finally:
        display.close()


def build_searching(lease: Lease) -> Sending:
    """Build a request with more searches than a budget allows."""
    Budget.objects.create(scope="site", unit="tokens", kind="per_member", limit=60_000)
    tools = [build_definition()]
    envelope = build_envelope(model=stored_turns.MODEL, max_tokens=2_000, system="", tools=tools)
    return replace(people_and_turns.sending(lease, envelope), opens=RoundOpened(1, 2))


async def test_what_a_quick_tool_does_is_shown_once_and_with_the_next_round(
    monkeypatch: Any,
) -> None:
    shown: list[tuple[Event, ...]] = []

    async def keep(_: int, *events: Event, **__: Any) -> None:
        shown.append(events)

    monkeypatch.setattr(turn_stream, "publish", keep)
    monkeypatch.setattr(turn_stream, "HELD_SECONDS", 60)
    display = TurnDisplay(await run_db(people_and_turns.started_turn))
    try:
        await display.publish(RoundOpened(1, 1))
        await display.hold(RoundChanged(1, 1), MeterMoved())
        # Its text is stored: what still comes of it is not shown.
        await display.grow("I look.", "")
        await display.hold(RoundChanged(1, 1))
        await display.hold(MeterMoved())
        assert shown == [(RoundOpened(1, 1),)]
        await display.publish(RoundOpened(1, 2))
        assert shown[1:] == [(RoundChanged(1, 1), MeterMoved(), RoundOpened(1, 2))]
    finally:
        display.close()


async def test_a_tool_is_shown_before_its_progress(monkeypatch: Any) -> None:
    shown: list[Event] = []

    async def keep(_: int, *events: Event, **__: Any) -> None:
        shown.extend(events)

    monkeypatch.setattr(turn_stream, "publish", keep)
    monkeypatch.setattr(turn_stream, "HELD_SECONDS", 60)
    display = TurnDisplay(await run_db(people_and_turns.started_turn))
    try:
        await display.hold(RoundChanged(1, 1))
        display._moved(ToolMoved("a", "half", 50))
        async with asyncio.timeout(60):
            while len(shown) < 2:
                await asyncio.sleep(0.01)
        assert shown == [RoundChanged(1, 1), ToolMoved("a", "half", 50)]
    finally:
        display.close()


async def test_a_page_that_is_cut_off_before_the_end_of_a_turn_gets_it_when_it_comes_back() -> None:
    """What the turn held is shown by itself between the commit of its end and the frame of that."""
    lease = await run_db(people_and_turns.started_turn)
    conversation = await run_db(read_conversation, lease)
    page = Page()
    keep_own_steps()
    display = TurnDisplay(lease)
    try:
        async with connected(conversation) as found:
            page.take(await frame_of(found))
            sent = await run_db(people_and_turns.opened, lease)
            await display.publish(RoundOpened(1, 1))
            await run_db(stored_turns.close, lease, sent.call, people_and_turns.complete())
            await display.hold(RoundChanged(1, 1), MeterMoved())
            await run_db(turns.finish_turn, lease=lease, finish=Finish("done", "end_turn"))
            while "Here you are." not in page.text("turn-1"):
                page.take(await frame_of(found))
            await watch.announce_stop()
            while not (sign := BEAT.match(str(await found.receive_from(timeout=60)))):
                pass
        await display.publish(TurnClosed(1))
        back = f"{page.bookmark}&left={sign[1]}"
        async with connected(conversation, query=back) as found:
            page.take(await frame_of(found))
        async with connected(conversation) as found:
            (newly := Page()).take(await frame_of(found))
    finally:
        display.close()
    assert page.turns == newly.turns


def read_conversation(lease: Lease) -> Conversation:
    return Conversation.objects.select_related("owner").get(pk=lease.conversation_id)
