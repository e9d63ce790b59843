"""Code, tables and links on their way: one block each, without seams, and where they end nothing
jumps.

Each frame that Chromium paints is looked at, and its own layout-shift entries are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from playwright.async_api import Page, WebSocketRoute, expect

from agentweb.bench.long_blocks import KINDS, SCRIPT
from agentweb.emulator import server
from agentweb.emulator.script import Script
from agentweb.emulator.server import EmulatorServer
from tests.e2e import served as app
from tests.e2e.people import ended, start_chat
from tests.e2e.served import Served
from tests.e2e.talks import shown, stored

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

#: Pixels that rounding may take from a height.
ROUNDING = 1
#: What a long block is while it grows, by its kind: one element, whatever has come of it.
BLOCKS = {"code": ".prose pre", "table": ".prose table", "links": ".prose ul"}
#: What a message with text of the running answer sets.
_TEXT = 'hx-swap-oob="innerHTML:#turn-1-r1-tail"'


_WATCH = """(block) => {
  window.frames_seen = []; window.shifts = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries())
      for (const source of entry.sources) {
        const node = source.node?.nodeType === 1 ? source.node : source.node?.parentElement;
        window.shifts.push({ value: entry.value,
          in: Boolean(node?.closest(".prose")) && Boolean(node?.isConnected),
          name: `${node?.localName}.${node?.className}: ${node?.textContent.slice(0, 40)}`,
          by: Math.abs(source.currentRect.top - source.previousRect.top) });
      }
  }).observe({ type: "layout-shift" });
  const look = () => {
    const answer = document.querySelector("#turn-1-r1-done > p");
    if (answer && !window.first) {
      window.first = answer;
      getSelection().selectAllChildren(answer);
    }
    const blocks = [...document.querySelectorAll(`#turn-1 ${block}`)];
    const boxes = blocks.map((one) => one.getBoundingClientRect());
    const first = document.querySelector("#turn-1 .prose p")?.getBoundingClientRect().top + scrollY;
    window.frames_seen.push({ blocks: blocks.length, first: Math.round(first),
      top: boxes.length ? Math.round(boxes[0].top + scrollY) : 0,
      height: boxes.length ? Math.round(boxes.at(-1).bottom - boxes[0].top) : 0,
      length: document.querySelector("#turn-1 .rounds").textContent.length,
      copy: blocks.every((one) => one.localName !== "pre"
        || one.closest(".code").querySelector("button")),
      live: document.querySelector("#turn-1").dataset.live });
    window.block ??= blocks.find((one) => !one.closest(".tail"));
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


@pytest.fixture(scope="module")
def api() -> Iterator[EmulatorServer]:
    with server.start(pace=0.002, script=Script(SCRIPT)) as running:
        yield running


@pytest.fixture(scope="module")
def served(api: EmulatorServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running = app.fork(
        tmp_path_factory.mktemp("streaming") / "data",
        ANTHROPIC_API_KEY="sk-slow",
        ANTHROPIC_BASE_URL=api.url,
        AGENTWEB_TITLE_MODEL="off",
    )
    yield running
    running.stop()


async def _stream(tab: Page, served: Served, kind: str) -> list[dict[str, Any]]:
    """Watch an answer to its end; give each frame since its block was there."""
    await start_chat(tab, served, f"Please show the {kind}")
    await tab.evaluate(_WATCH, BLOCKS[kind])
    await ended(tab, 1)
    await expect(tab.locator("#turn-1")).to_contain_text(
        f"That was the {kind.replace('links', 'report')}"
    )
    await tab.wait_for_timeout(200)
    frames: list[dict[str, Any]] = await tab.evaluate("window.frames_seen")
    return [frame for frame in frames if frame["blocks"]]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_long_block_grows_as_one_and_stays_as_it_is(
    tab: Page, served: Served, kind: str
) -> None:
    frames = await _stream(tab, served, kind)
    growing = [frame for frame in frames if frame["live"] == "yes"]
    assert len({frame["height"] for frame in growing}) > 20, "it was not seen growing"
    assert {frame["blocks"] for frame in frames} == {1}
    assert all(frame["copy"] for frame in frames)
    assert len({frame["top"] for frame in frames}) == 1, "it jumped"
    heights = [frame["height"] for frame in frames]
    lost = [before - after for before, after in pairwise(heights)]
    assert max(lost) <= ROUNDING, "it shrank"
    # A wider cell widens its column; nothing that is there moves up or down. The tail itself moves
    # when what it begins with is closed, and what is in it stays where it is.
    shifts = [one for one in await tab.evaluate("window.shifts") if one["in"] and one["by"] > 1]
    shifts = [one for one in shifts if not one["name"].startswith("div.prose tail:")]
    assert shifts == []
    # They are the same elements to the end, so what a reader has selected stays selected.
    # (Only code that a busy process showed without colours gets them then.)
    assert await tab.evaluate("first.isConnected")
    assert kind == "code" or await tab.evaluate("block.isConnected")
    assert await tab.evaluate("String(getSelection())") == await tab.evaluate("first.textContent")
    assert await shown(tab) == await stored(tab)


@pytest.mark.parametrize("kind", ["table", "links"])
async def test_a_block_stays_though_the_last_text_comes_with_the_end(
    tab: Page, served: Served, kind: str
) -> None:
    """As from a busy server: the last two messages of an answer are one."""
    held, joined = list[str](), list[str]()

    async def pass_on(socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()

        def take(message: str | bytes) -> None:
            text = message if isinstance(message, str) else message.decode()
            if held and 'data-live=""' in text:
                joined.append(text)
                text = f"{held.pop()}\n{text}"
            while held:
                socket.send(held.pop())
            if _TEXT in text and not joined:
                held.append(text)
            else:
                socket.send(text)

        server.on_message(take)

    await tab.route_web_socket(re.compile("/ws/"), pass_on)
    frames = await _stream(tab, served, kind)
    assert len(joined) == 1
    assert {frame["blocks"] for frame in frames} == {1}
    assert await tab.evaluate("first.isConnected && block.isConnected")
    assert await shown(tab) == await stored(tab)
