"""Ways on from an answer: other words while it is on its way, an empty one, a full context."""

from __future__ import annotations

import pytest
from django.template.loader import render_to_string
from playwright.async_api import Page, expect

from conversations.transcript.shapes import Meter, Tick
from tests.e2e.conftest import Serve
from tests.e2e.people import ended, say, set_up, start_chat, turn
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


async def test_other_words_for_an_earlier_message_stop_the_answer_and_go(
    page: Page, serve_app: Serve
) -> None:
    served = serve_app(AGENTWEB_EMULATOR_DELAY_MS="20")
    await set_up(page, served)
    await start_chat(page, served, "Hello there")
    await ended(page, 1)
    await say(page, "Answer in 3000 words")
    await expect(turn(page, 2).locator(".prose").first).not_to_be_empty()
    await turn(page, 1).locator(".prompt").hover()
    await turn(page, 1).get_by_role("link", name="Edit").click()
    editor = turn(page, 1).locator(".editor")
    await expect(editor).to_contain_text("Sending stops it first")
    # The answer grows below; the editor stays where it is.
    top = await editor.evaluate("node => node.getBoundingClientRect().top")
    grown = await turn(page, 2).evaluate("node => node.offsetHeight")
    await page.wait_for_function(
        "([was]) => document.querySelector('#turn-2').offsetHeight > was + 80", arg=[grown]
    )
    assert abs(await editor.evaluate("node => node.getBoundingClientRect().top") - top) < 2
    await page.locator("#edit-1").fill("What time is it in Lima?")
    await page.keyboard.press("Control+Enter")
    await ended(page, 3)
    await expect(page.locator(".turn")).to_have_count(1)
    await expect(turn(page, 3)).to_contain_text("What time is it in Lima?")


async def test_an_empty_answer_says_so_and_can_be_asked_for_again(
    page: Page, served: Served
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Say something emulator:fault=empty")
    section = await ended(page, 1)
    await expect(section.locator(".chip")).to_have_text("The answer is empty")
    await section.get_by_role("button", name="Try again").click()
    await ended(page, 2)


_COLOUR = """html => {
  document.querySelector("#meter").outerHTML = html;
  const level = document.querySelector("#meter .level"), track = level.previousElementSibling;
  const share = level.getBBox().width / track.getBBox().width;
  return [getComputedStyle(level).fill, Math.round(share * 100)];
}"""


async def test_the_gauge_has_a_colour_from_70_and_from_90_percent(
    page: Page, served: Served
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Hello there")
    await ended(page, 1)
    # Of a window of a million, of which older parts are reduced from 100,000 on: of these.
    reduced = Tick(10, "100,000: nothing is removed before that", 100_000)
    for ticks, size in (((), 1_000_000), ((reduced,), 100_000)):
        colours = {}
        for percent in (69, 70, 89, 90):
            tokens = percent * size // 100
            meter = Meter(tokens, 1_000_000, tokens // 10_000, "reported", None, ticks)
            html = render_to_string("conversations/_partials/meter.html", {"meter": meter})
            colours[percent], share = await page.evaluate(_COLOUR, html)
            assert share == percent
        assert colours[70] == colours[89]
        assert len({*colours.values()}) == 3
