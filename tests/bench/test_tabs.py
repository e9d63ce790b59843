"""The tabs of a load test do what the chat's page does, and count what was never shown."""

from __future__ import annotations

import asyncio
import re
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.utils import accept_key

from agentweb.bench import shown_and_stored, tabs
from agentweb.bench.readers import Reader
from agentweb.bench.shown_page import STAMP, Shown
from agentweb.bench.stored_answers import read_stored_stamps
from agentweb.bench.tabs import Tab
from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations.db import run_db
from conversations.live import watch
from conversations.live.hub import hub
from tests.support.running_turns import ended, queue, supervising
from tests.web.fold import Page
from tests.web.tabs import ada_and_her_conversation, connected

pytestmark = [pytest.mark.asyncio]
HISTORY = '<div id="history" data-after="{}" data-mark="{}" hx-swap-oob="outerHTML">{}</div>'
LIVE = '<div id="live" hx-swap-oob="outerHTML">{}</div>'
TURN = '<section id="turn-{0}" class="turn">{1}</section>'
ROUND = '<div id="turn-{0}-r1"><div id="turn-{0}-r1-done">{1}</div><div id="turn-{0}-r1-tail">'
HANDSHAKE = (
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Accept: {}\r\n\r\n"
)
LEAVES = '<div id="restarting" hidden data-within="0" hx-swap-oob="outerHTML"></div>'
A, B, C = (f"{number:010}" for number in (1, 2, 3))


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorServer]:
    with server.start(pace=0, rate=400) as running:
        yield running


def live(*done: str) -> str:
    """Give a snapshot of one running turn."""
    words = " ".join(f"t{each}" for each in done)
    rounds = ROUND.format(1, words) + "</div></div>"
    return LIVE.format(TURN.format(1, rounds))


def tab_of(*messages: str) -> Tab:
    made = Tab("http://none", {"chat": "a", "token": "t", "session": "s"})
    for message in messages:
        made.shown.take_message(message)
    made.is_here.set()
    return made


async def test_its_patience_is_that_of_the_page() -> None:
    script = Path("static/connection.js").read_text(encoding="utf-8")

    def numbers(name: str) -> list[int]:
        found = re.search(rf"const {name} = \[([\d_, ]+)\];", script)
        assert found is not None, name
        return [int(number) for number in found[1].split(",")]

    ours = [tabs.PAUSE, tabs.HANDSHAKE, tabs.SILENCE, tabs.GOOD]
    assert numbers(r"\[PAUSE, HANDSHAKE, SILENCE, GOOD\]") == [1_000 * each for each in ours]
    *for_good, away = numbers(r"\[LOGGED_OUT, GONE, CROWDED, AWAY\]")
    assert for_good == [*tabs.FOR_GOOD]
    assert away not in tabs.FOR_GOOD
    assert numbers("TOO_SLOW") == [*tabs.TOO_SLOW]
    assert f"const BEAT = /{tabs.BEAT.pattern}/;" in script


@pytest.mark.django_db(transaction=True)
async def test_a_sign_of_life_may_come_before_the_snapshot_of_a_page() -> None:
    """It is for all sockets of a process, also for one whose snapshot is still being read."""
    _, conversation = await ada_and_her_conversation()
    topic = hub.enter(conversation.pk)
    async with topic.lock:
        opening = connected(conversation)
        found = await opening.__aenter__()
        await watch.watch._send(watch.write_sign)
        assert await found.receive_from(timeout=60) == "<!-- alive -->"
    assert 'id="turn-1"' in await found.receive_from(timeout=60)
    await opening.__aexit__(None, None, None)
    hub.leave(conversation.pk)


@asynccontextmanager
async def saying(*sockets: list[str]) -> AsyncIterator[tuple[str, list[str]]]:
    """Serve sockets that say so much each; all but the last one are closed then, as by a restart.

    Gives the address, and the heads of what was asked so far.
    """
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked.append(head)
        key = re.search(r"Sec-WebSocket-Key: (\S+)", head)
        assert key is not None
        writer.write(HANDSHAKE.format(accept_key(key[1])).encode())
        for message in sockets[len(asked) - 1]:
            data = message.encode()
            writer.write(struct.pack("!BBH", 0x81, 126, len(data)) + data)
        if len(asked) < len(sockets):
            writer.write(struct.pack("!BBH", 0x88, 2, 1012))
        await reader.read()
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}", asked


async def test_a_tab_comes_back_with_its_place_and_is_here_with_its_snapshot() -> None:
    heard: list[str] = []
    first = [HISTORY.format(7, "abc", TURN.format(7, "")), live(A), LEAVES]
    again = ["<!-- alive -->", LEAVES, live(A, B)]
    async with saying(["\n".join(first)], again) as (url, asked):
        tab = Tab(url, {"chat": "x", "token": "t", "session": "s"}, heard.append)
        following = asyncio.create_task(tab.follow())
        async with asyncio.timeout(60):
            while not (tab.lost and tab.is_here.is_set()):
                await asyncio.sleep(0.01)
        assert tab.shown.stamps == [A, B]
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    assert ["after=0&mark=&" in head for head in asked] == [True, False]
    assert "after=7&mark=abc&" in asked[1]
    assert (tab.opened, tab.messages) == (2, 4)
    # What counts words hears nothing of signs of life.
    assert heard == ["\n".join(first), *again[1:]]


async def test_a_tab_that_was_left_unchanged_says_so_and_is_here_with_its_budgets() -> None:
    budgets = '<div id="composer-state" hx-swap-oob="outerHTML"></div>'
    first, again = [live(A), "<!-- alive 5 -->", LEAVES], ["<!-- alive -->", budgets]
    async with saying(first, again) as (url, asked):
        tab = Tab(url, {"chat": "x", "token": "t", "session": "s"})
        following = asyncio.create_task(tab.follow())
        async with asyncio.timeout(60):
            while not (tab.lost and tab.is_here.is_set()):
                await asyncio.sleep(0.01)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    assert ["&left=5" in head for head in asked] == [False, True]
    assert (tab.messages, tab.shown.stamps) == (5, [A])


@pytest.mark.django_db(transaction=True)
async def test_a_tab_shows_what_the_page_shows_at_every_moment(
    emulator: EmulatorServer, settings: Any
) -> None:
    settings.ANTHROPIC_BASE_URL = emulator.url
    page, shown = Page(), Shown()

    def take(message: str) -> bool:
        page.take(message)
        shown.take_message(message)
        parts = (page.text(f"turn-1-r1-{part}") for part in ("done", "tail"))
        assert shown.stamps == STAMP.findall(" ".join(parts))
        assert page.bookmark == "after={}&mark={}".format(*shown.bookmark)
        section = page.find("turn-1")
        return section is not None and section.attributes["data-live"] == ""

    async with supervising() as supervisor:
        turn = await queue("Answer in 450 words of Markdown")
        async with connected(turn.conversation) as found:
            take(await found.receive_from(timeout=60))
            supervisor.wake(turn.pk)
            while len(shown.stamps) < 20:
                take(await found.receive_from(timeout=60))
        after, mark = shown.bookmark
        query = f"after={after}&mark={mark}"
        async with connected(turn.conversation, query=query) as found:
            while not take(await found.receive_from(timeout=60)):
                pass
        await ended(turn)
    chat = str(turn.conversation.public_id)
    assert (await run_db(read_stored_stamps, [chat], 60))[chat] == shown.stamps
    assert len(shown.stamps) == 225
    assert shown.missed == page.missed == []


async def test_what_is_for_no_place_of_the_page_is_missed() -> None:
    shown = Shown()
    shown.take_message(f'<div hx-swap-oob="innerHTML:#turn-2-r1-tail">t{A}</div>')
    assert (shown.stamps, shown.missed) == ([], ["turn-2-r1-tail"])


async def test_late_missing_and_unstored_deltas_are_told_apart(monkeypatch: Any) -> None:
    monkeypatch.setattr(shown_and_stored, "PATIENCE", 0)
    whole, lacking = tab_of(live(A, B, C)), tab_of(live(A, C))
    found = await shown_and_stored.compare_tabs(
        [whole, lacking], {"a": [A, B, C]}, {"deltas": 5}, [1, 2]
    )
    assert found == {"late": 2, "missing": 1, "unstored": 4}
    reader = Reader(3)
    reader.count([A, B])
    assert await shown_and_stored.compare_pages([reader], {"deltas": 3}) == {
        "late": 0, "missing": 1, "unstored": 0
    }  # fmt: skip


async def test_a_tab_is_equal_that_shows_all_in_order_once_and_is_there(
    monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setattr(shown_and_stored, "PATIENCE", 0)
    kept = {"a": [A, B]}
    good, away = tab_of(live(A, B)), tab_of(live(A, B))
    away.is_here.clear()
    assert await shown_and_stored.count_unequal([good], kept) == {"answers": 1, "unequal": 0}
    bad = [tab_of(live(*some)) for some in ((A,), (B, A), (A, B, B), (A, B, C), ())]
    assert await shown_and_stored.count_unequal([good, *bad, away], kept) == {
        "answers": 7,
        "unequal": 6,
    }
    assert "2 deltas are stored, 1 are shown, 1 are not, 0 are twice" in capsys.readouterr().err
