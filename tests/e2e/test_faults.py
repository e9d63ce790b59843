"""What a person sees when the API fails: a countdown, a kept answer, a refusal, a failed tool."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.e2e.people import ended, say, set_up, start_chat, turn
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


async def test_a_wait_is_counted_down_and_a_stop_ends_it(page: Page, served: Served) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Hello emulator:fault=rate_limited:40")
    status = turn(page, 1).locator(".status")
    await expect(status).to_contain_text("Attempt 2 of 4")
    clock = status.locator("time[data-countdown]")
    first = await clock.inner_text()
    await expect(clock).not_to_have_text(first)
    async with page.expect_request("**/stop/") as asked:
        await status.get_by_role("button", name="Cancel").click()
    assert (await asked.value).post_data == "turn=1"
    section = await ended(page, 1)
    await expect(section).to_contain_text("Stopped")
    await say(page, "Hello again")
    await expect(await ended(page, 2)).to_contain_text("I am the built-in emulator")


async def test_a_cut_answer_keeps_its_text_and_can_be_tried_again(
    page: Page, served: Served
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Answer in 200 words emulator:fault=cut_after:30:x1")
    section = await ended(page, 1)
    await expect(section).to_contain_text("The connection to the API was cut.")
    kept = await section.locator(".answer .prose").first.inner_text()
    assert kept.strip()
    await page.reload()
    assert (await turn(page, 1).locator(".answer .prose").first.inner_text()) == kept
    await turn(page, 1).get_by_role("button", name="Try again").click()
    section = await ended(page, 2)
    words = await section.locator(".answer .prose").first.inner_text()
    assert len(words.split()) > 150


async def test_a_refusal_says_what_it_is_and_the_chat_goes_on(page: Page, served: Served) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Hello emulator:fault=refusal")
    section = await ended(page, 1)
    await expect(section.locator(".chip")).to_have_text("The model declined to answer")
    await expect(section.locator(".error")).to_contain_text("Its reason: cyber.")
    await say(page, "What did I just say?")
    # The refused message is not in view of the model any more.
    await expect(await ended(page, 2)).to_contain_text("this message is the first one in view")


async def test_a_tool_call_that_cannot_run_is_red_and_says_why(page: Page, served: Served) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Hello emulator:fault=wrong_input_tool:x1")
    section = await ended(page, 1)
    card = section.locator(".tool.is-error")
    await expect(card).to_have_count(1)
    await card.locator("summary").first.click()
    await expect(card).to_contain_text("path")
    colour = await card.locator(".state").evaluate("found => getComputedStyle(found).color")
    red, green, blue = (int(part) for part in colour[4:-1].split(",")[:3])
    assert red > max(green, blue)
