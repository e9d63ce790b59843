"""Messages that wait in the browser: whose they are, which chat they go to, and what stops them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from playwright.async_api import Page, Route, expect

from tests.e2e import served as app
from tests.e2e.people import CHAT, NAME, ended, log_in, say, start_chat, turn
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
START = "**/c/start/"
BOB = """
from conversations.models import User
User.objects.create_user("bob", email="bob@example.org", password="correct horse battery")
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running = app.fork(tmp_path_factory.mktemp("outbox") / "data", AGENTWEB_TITLE_MODEL="off")
    yield running
    running.stop()


async def open_new(tab: Page, served: Served) -> None:
    await tab.goto(f"{served.url}/c/new/")


async def become(tab: Page, served: Served, name: str) -> None:
    await tab.locator("form[action='/accounts/logout/'] button").first.click()
    await tab.wait_for_url("**/accounts/login/**")
    await log_in(tab, served, name)
    await open_new(tab, served)


async def test_a_kept_message_survives_what_another_person_sends(tab: Page, served: Served) -> None:
    served.manage("shell", "-c", BOB)
    await tab.route(START, lambda route: route.abort())
    await open_new(tab, served)
    await say(tab, "Ada's kept message")
    await expect(tab.locator("#outbox")).to_contain_text("Not sent yet")
    await become(tab, served, "bob")
    await tab.unroute(START)
    await expect(tab.locator("#outbox")).to_be_hidden()
    await say(tab, "Bob asks something")
    await tab.wait_for_url(CHAT)
    await tab.route(START, lambda route: route.abort())
    await become(tab, served, NAME)
    await expect(tab.locator("#outbox")).to_contain_text("Ada's kept message")


async def test_what_follows_a_first_message_on_its_way_goes_to_its_chat(
    tab: Page, served: Served
) -> None:
    opens = asyncio.Event()

    async def wait(route: Route) -> None:
        await opens.wait()
        await route.continue_()

    await tab.route(START, wait)
    await open_new(tab, served)
    await say(tab, "Here is my letter")
    await expect(tab.locator("#outbox")).to_contain_text("Sending…")
    await say(tab, "Make it shorter")
    await tab.locator("#file-input").set_input_files(
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"as I said"}
    )
    await expect(tab.locator("#waiting [data-file]")).to_have_count(1)
    await tab.fill("#text", "And one more th")
    opens.set()
    await tab.wait_for_url(CHAT)
    await expect(turn(tab, 1).locator(".prompt")).to_contain_text("Here is my letter")
    await expect(await ended(tab, 2)).to_contain_text("Make it shorter")
    await expect(tab.locator("#text")).to_have_value("And one more th")
    await expect(tab.locator("#waiting [data-file]")).to_contain_text("notes.txt")
    await open_new(tab, served)
    await expect(tab.locator("#text")).to_have_value("")
    await expect(tab.locator("#waiting")).to_be_hidden()


async def test_what_is_written_offline_on_one_page_becomes_one_chat(
    tab: Page, served: Served
) -> None:
    await open_new(tab, served)
    before = await tab.locator("#rows .row").count()
    await tab.context.set_offline(True)
    await say(tab, "Here is my letter")
    await say(tab, "Make it shorter")
    await expect(tab.locator(".outbox-row")).to_have_count(2)
    await tab.context.set_offline(False)
    await tab.wait_for_url(CHAT)
    await expect(await ended(tab, 2)).to_contain_text("Make it shorter")
    await expect(turn(tab, 1).locator(".prompt")).to_contain_text("Here is my letter")
    await expect(tab.locator("#rows .row")).to_have_count(before + 1)


async def test_a_chat_that_takes_no_message_says_why_and_holds_up_no_other(
    tab: Page, served: Served
) -> None:
    reason = "Not sent: what is left of today's budget is not enough for an answer."
    chats = []
    for text in ("The first chat", "The second chat"):
        await start_chat(tab, served, text)
        await ended(tab, 1)
        chats.append(tab.url)
    answer = f'<p class="error send-error">{reason}</p>'
    for closed, free in (chats, chats[::-1]):
        sends = f"{closed}send/"
        await tab.route(sends, lambda route: route.fulfill(status=409, body=answer))
        for chat in (closed, free):
            await tab.goto(chat)
            await tab.context.set_offline(True)
            await say(tab, "Written in the train")
            await expect(tab.locator("#outbox")).to_contain_text("Not sent yet")
            await tab.goto("about:blank")
            await tab.context.set_offline(False)
        await tab.goto(free)
        await expect(tab.locator("#outbox")).to_be_hidden()
        await expect(tab.locator(".turn").last).to_contain_text("Written in the train")
        await tab.goto(closed)
        await expect(tab.locator("#outbox")).to_contain_text(reason)
        async with tab.expect_request(sends):
            await tab.locator("#outbox").get_by_role("button", name="Try again").click()
        await tab.unroute(sends)
        await tab.reload()
        await expect(tab.locator("#outbox")).to_be_hidden()


async def test_a_first_message_that_is_not_taken_now_is_back_with_the_reason(
    tab: Page, served: Served
) -> None:
    answer = '<p class="error send-error">Your message is kept here.</p>'
    await tab.route(START, lambda route: route.fulfill(status=409, body=answer))
    await open_new(tab, served)
    await say(tab, "A question")
    await expect(tab.locator("#composer-error")).to_have_text("Your message is kept here.")
    await expect(tab.locator("#text")).to_have_value("A question")
    await expect(tab.locator("#outbox")).to_be_hidden()


async def test_a_page_that_cannot_be_left_holds_up_no_other_tab(tab: Page, served: Served) -> None:
    await start_chat(tab, served, "Hello")
    await ended(tab, 1)
    second = await tab.context.new_page()
    await second.goto(tab.url)
    away = {"HX-Redirect": "/accounts/elsewhere/"}
    await tab.route("**/send/", lambda route: route.fulfill(status=403, headers=away), times=1)
    await tab.route("**/elsewhere/", lambda route: route.fulfill(status=204))
    async with tab.expect_request("**/elsewhere/"):
        await say(tab, "Sent from the first tab")
    # It sends what the first tab keeps, too.
    await say(second, "Sent from the second tab")
    await expect(await ended(second, 3)).to_contain_text("Sent from the second tab")
    await expect(turn(second, 2)).to_contain_text("Sent from the first tab")
    await expect(tab.locator("#outbox")).to_be_hidden()
    await second.close()


#: A minute of patience is half a second.
IMPATIENT = (
    "AbortSignal.timeout = ((of) => (ms) => of(ms / 120))(AbortSignal.timeout.bind(AbortSignal))"
)


async def test_a_request_that_is_never_answered_is_made_again(tab: Page, served: Served) -> None:
    await tab.add_init_script(IMPATIENT)
    await start_chat(tab, served, "Hello")
    await ended(tab, 1)
    # A route that does nothing leaves its request without an answer.
    await tab.route("**/send/", lambda route: None, times=1)
    await say(tab, "Is anybody there?")
    await expect(await ended(tab, 2)).to_contain_text("Is anybody there?")
    await expect(tab.locator("#outbox")).to_be_hidden()


async def test_what_was_taken_back_from_the_queue_is_not_sent_again(
    tab: Page, served: Served
) -> None:
    """It had come to the server; only the answer to its request did not come back."""
    await start_chat(tab, served, "Answer in 4000 words")

    async def deliver(route: Route) -> None:
        await route.fetch()

    await tab.route("**/send/", deliver, times=1)
    await say(tab, "Never mind")
    await expect(tab.locator(".queue li")).to_have_count(1)
    await expect(tab.locator("#outbox")).to_contain_text("Never mind")
    await tab.locator(".queue li").get_by_role("button", name="Remove").click()
    await expect(tab.locator(".queue li")).to_have_count(0)
    await expect(tab.locator("#outbox")).to_be_hidden()
    await tab.reload()
    await expect(tab.locator("#transcript")).not_to_contain_text("Never mind")
    await expect(tab.locator(".queue li")).to_have_count(0)
    await tab.locator("#stop").click()
    await ended(tab, 1)


async def test_a_long_message_has_longer_than_a_minute_on_a_slow_network(
    tab: Page, served: Served
) -> None:
    await tab.add_init_script("AbortSignal.timeout = (ms) => { window.patience = ms; }")
    await start_chat(tab, served, "Hello")
    await ended(tab, 1)
    # As large as 900,000 bytes: more than a minute at 100 kbit/s.
    await say(tab, "あ" * 100_000)
    await ended(tab, 2)
    assert await tab.evaluate("window.patience") > 900_000 * 8 / 100


async def test_the_box_is_free_while_a_message_is_on_its_way(tab: Page, served: Served) -> None:
    await start_chat(tab, served, "Hello")
    await ended(tab, 1)
    arrives = asyncio.Event()

    async def wait(route: Route) -> None:
        await arrives.wait()
        await route.continue_()

    await tab.route("**/send/", wait)
    await say(tab, "The first question")
    await expect(tab.locator("#text")).to_have_value("")
    await expect(tab.locator("#outbox")).to_contain_text("The first question")
    await expect(tab.locator("#outbox")).to_contain_text("Sending…")
    await tab.keyboard.type("The second one")
    arrives.set()
    await expect(await ended(tab, 2)).to_contain_text("The first question")
    await expect(tab.locator("#outbox")).to_be_hidden()
    await tab.keyboard.press("Enter")
    await expect((await ended(tab, 3)).locator(".prompt .bubble")).to_have_text("The second one")


async def test_a_refused_message_is_back_in_the_box_with_its_files(
    tab: Page, served: Served
) -> None:
    await start_chat(tab, served, "Hello")
    await ended(tab, 1)
    note = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"of the week"}
    await tab.locator("#file-input").set_input_files(note)  # type: ignore[arg-type]
    await expect(tab.locator("#waiting [data-file]")).to_have_count(1)
    answer = '<p class="error send-error">Not now.</p>'
    await tab.route("**/send/", lambda route: route.fulfill(status=409, body=answer), times=1)
    await say(tab, "Read this")
    await expect(tab.locator("#composer-error")).to_have_text("Not now.")
    await expect(tab.locator("#text")).to_have_value("Read this")
    await expect(tab.locator("#waiting [data-file]")).to_contain_text("notes.txt")
    await tab.keyboard.press("Enter")
    await expect(await ended(tab, 2)).to_contain_text("notes.txt")
    await expect(tab.locator("#composer-error")).to_be_empty()


async def test_other_words_in_a_second_tab_are_another_message(tab: Page, served: Served) -> None:
    """Both tabs show one draft; the second has not heard yet that the first has sent it."""
    await start_chat(tab, served, "Hello")
    await ended(tab, 1)
    second = await tab.context.new_page()
    deaf = "addEventListener('storage', (it) => window.isDeaf && it.stopImmediatePropagation())"
    await second.add_init_script(deaf)
    await second.goto(tab.url)
    await tab.fill("#text", "The first message")
    await expect(second.locator("#text")).to_have_value("The first message")
    await second.evaluate("isDeaf = true")
    await tab.locator("#text").press("Enter")
    await expect(await ended(tab, 2)).to_contain_text("The first message")
    await say(second, "A second message")
    await expect(await ended(tab, 3)).to_contain_text("A second message")
    await second.close()


async def test_who_writes_in_a_chat_that_was_deleted_elsewhere_is_told(
    tab: Page, served: Served
) -> None:
    await start_chat(tab, served, "Hello")
    await ended(tab, 1)
    sends, text = f"{tab.url}send/", tab.locator("#text")
    await tab.route(sends, lambda route: route.abort())
    for words in ("Are you there?", "And now?"):
        await say(tab, words)
    await expect(tab.locator(".outbox-row")).to_have_count(2)
    await text.fill("Half a")
    other = await tab.context.new_page()
    await other.goto(f"{tab.url}menu/")
    await other.get_by_role("button", name="Delete").click()
    await other.wait_for_url("**/c/list/")
    await other.close()
    await tab.unroute(sends)
    await tab.evaluate("window.dispatchEvent(new Event('online'))")
    await expect(text).to_have_value("Are you there?\n\nAnd now?\n\nHalf a")
    await expect(tab.locator("#gone")).to_be_visible()
    await expect(tab.locator("#outbox")).to_be_hidden()
    await expect(tab.locator("#composer-error")).to_be_empty()
    # All of it goes along.
    await tab.get_by_role("link", name="Go on in a new chat").click()
    await expect(text).to_have_value("Are you there?\n\nAnd now?\n\nHalf a")
