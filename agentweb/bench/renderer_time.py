"""What a long block costs the browser while it is streamed, beside plain words in the same run.

Chromium's own figures, by its DevTools protocol: the time that the main thread of the page's
renderer computes from the message that is sent to the end of the answer, in thread time, which a
busy machine does not lengthen. The twin of plain words (`long_blocks`) has as many bytes and comes
in as many deltas; a page of each is read once first, so that no row pays for what a browser makes
once.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright

from agentweb.bench import long_blocks
from agentweb.bench.processes import NotStarted
from agentweb.bench.site_under_test import EMBEDDED, Site, run_emulator, run_site

#: How many times the time of plain words a long block may take.
MOST_RATIO = 2.0
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
#: Chromium's names of what it measures; the first includes the others.
_TASK = "TaskDuration"
_PARTS = {
    "script": "ScriptDuration",
    "style": "RecalcStyleDuration",
    "layout": "LayoutDuration",
}
_PATIENCE = 300_000.0
_Row = dict[str, Any]


def find_chromium() -> str:
    """Find Chromium, best without the windows that nobody sees, whose pages cost a fifth.

    Empty when there is none.
    """
    wanted = (os.environ.get("AGENTWEB_CHROMIUM"), "chromium-headless-shell", "/usr/bin/chromium")
    names = (*wanted, "chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if name and (found := shutil.which(name))), "")


def measure(pace: float, report: Callable[[str], None]) -> list[_Row]:
    """Measure each kind of block and its twin."""
    if not (chromium := find_chromium()):
        raise NotStarted("Chromium was not found: apt install chromium, or set AGENTWEB_CHROMIUM")
    script = Path(long_blocks.__file__)
    with run_emulator(0, script, pace) as api, run_site(EMBEDDED, api) as tested:
        return asyncio.run(_measure_kinds(chromium, tested, report))


async def _measure_kinds(chromium: str, tested: Site, report: Callable[[str], None]) -> list[_Row]:
    kinds, rows = list(long_blocks.ANSWERS), []
    chats = iter(tested.people(2 * len(kinds) + 1))
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=[*FLAGS])
        await _measure_answer(browser, tested, next(chats), "Please show the links")
        for kind in kinds:
            plain, long = [
                await _measure_answer(browser, tested, next(chats), f"Please show the {name}")
                for name in (f"plain {kind}", kind)
            ]
            rows.append(judge({"kind": kind, "plain": plain, "long": long}))
            report(format_line(rows[-1]))
        await browser.close()
    return rows


async def _measure_answer(browser: Browser, tested: Site, chat: _Row, text: str) -> _Row:
    """Ask in a page of its own; return milliseconds and the frames that the page was sent."""
    context = await browser.new_context(
        viewport={"width": 1100, "height": 800}, service_workers="block"
    )
    cookie = {"name": "sessionid", "value": chat["session"], "url": tested.url}
    await context.add_cookies([cookie])  # type: ignore[list-item]
    page = await context.new_page()
    sizes = _count_frames(page)
    await page.goto(f"{tested.url}/c/{chat['chat']}/")
    devtools = await context.new_cdp_session(page)
    await devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = (await devtools.send("Performance.getMetrics"))["metrics"]
    sizes.clear()
    await page.fill("textarea[name=text]", text)
    await page.keyboard.press("Enter")
    await page.locator("#turn-1[data-live='']").wait_for(timeout=_PATIENCE)
    # The end is painted with the next frame.
    await page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    after = (await devtools.send("Performance.getMetrics"))["metrics"]
    await context.close()
    return _subtract(before, after) | {"frames": len(sizes), "bytes": sum(sizes)}


def _count_frames(page: Page) -> list[int]:
    sizes: list[int] = []
    page.on(
        "websocket",
        lambda socket: socket.on("framereceived", lambda data: sizes.append(len(data))),
    )
    return sizes


def _subtract(before: list[_Row], after: list[_Row]) -> _Row:
    first, last = ({one["name"]: one["value"] for one in each} for each in (before, after))
    names = {"total": _TASK} | _PARTS
    return {name: round(1e3 * (last[its] - first[its]), 1) for name, its in names.items()}


def judge(row: _Row) -> _Row:
    """Add how many times the plain words' time the block takes, and whether that is little."""
    ratio = round(row["long"]["total"] / max(row["plain"]["total"], 0.1), 2)
    return row | {"ratio": ratio, "is_within": ratio <= MOST_RATIO}


def format_line(row: _Row) -> str:
    sides = [
        "{total:,.0f} ms (script {script:,.0f}, style {style:,.0f}, layout {layout:,.0f};"
        " {frames} frames)".format(**row[side])
        for side in ("long", "plain")
    ]
    verdict = "within" if row["is_within"] else "above"
    return (
        f"{row['kind']:5} {sides[0]}, plain words {sides[1]}: {row['ratio']:.2f} times,"
        f" {verdict} the bound of {MOST_RATIO:g}"
    )
