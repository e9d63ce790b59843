"""What a person does on the pages, in one line each."""

from __future__ import annotations

import re

from playwright.async_api import Locator, Page, expect

from tests.e2e.served import Served

NAME, PASSWORD = "ada", "correct horse battery"
CHAT = re.compile(r"/c/[0-9a-f-]{36}/$")
#: Milliseconds a whole turn of the emulator may take on a busy machine.
TURN = 90_000


async def set_up(page: Page, served: Served) -> None:
    """Create the first administrator by the printed link, or be logged in when that is done."""
    if not (served.data / "setup_token").exists():
        await _come_back(page, served)
        return
    await page.goto(served.setup_url)
    await page.fill("[name=username]", NAME)
    await page.fill("[name=email]", "ada@example.org")
    await page.fill("[name=password1]", PASSWORD)
    await page.fill("[name=password2]", PASSWORD)
    await page.click("main button[type=submit]")
    await page.wait_for_url("**/c/new/")
    await _keep(page, served)


async def _come_back(page: Page, served: Served) -> None:
    """Have the session of who came before; log in where that is over."""
    await page.context.add_cookies(served.cookies)
    await page.goto(f"{served.url}/c/new/")
    if page.url != f"{served.url}/c/new/":
        await log_in(page, served)
        await _keep(page, served)


async def _keep(page: Page, served: Served) -> None:
    found = await page.context.cookies(served.url)
    served.cookies = [one for one in found if one["name"] == "sessionid"]


async def log_in(page: Page, served: Served, name: str = NAME, password: str = PASSWORD) -> None:
    await page.goto(f"{served.url}/accounts/login/")
    await page.fill("[name=username]", name)
    await page.fill("[name=password]", password)
    await page.click("main button[type=submit]")
    await page.wait_for_url("**/c/**")


async def start_chat(page: Page, served: Served, text: str) -> None:
    """Begin a conversation with its first message."""
    await page.goto(f"{served.url}/c/new/")
    await page.fill("textarea[name=text]", text)
    await page.keyboard.press("Enter")
    await page.wait_for_url(CHAT)


async def upload(page: Page, served: Served, files: dict[str, str]) -> None:
    """Put files into the person's workspace."""
    await page.goto(f"{served.url}/files/")
    chosen = [
        {"name": name, "mimeType": "text/plain", "buffer": text.encode()}
        for name, text in files.items()
    ]
    await page.locator("input[name=files]").set_input_files(chosen)  # type: ignore[arg-type]
    await page.get_by_role("button", name="Add files", exact=True).last.click()
    for name in files:
        await expect(page.get_by_role("link", name=name).first).to_be_visible()


async def download(page: Page, served: Served, name: str) -> str:
    """Give the text of a file of the workspace, as the person downloads it."""
    await page.goto(f"{served.url}/files/")
    async with page.expect_download() as begun:
        await page.get_by_role("link", name=f"Download {name}").click()
    return (await (await begun.value).path()).read_text(encoding="utf-8")


async def allow(page: Page, *tools: str) -> None:
    """Answer the open questions: these tools may tell their destinations in this chat."""
    for tool in tools:
        questions = page.locator(".question").filter(has_text=tool)
        await expect(questions.first).to_be_visible(timeout=60_000)
        await questions.first.get_by_role("button", name=re.compile("in this chat")).click()
        # The others of the same kind are answered with it.
        await expect(questions).to_have_count(0)


async def say(page: Page, text: str) -> None:
    await page.fill("textarea[name=text]", text)
    await page.keyboard.press("Enter")


def turn(page: Page, number: int) -> Locator:
    return page.locator(f"#turn-{number}")


async def ended(page: Page, number: int) -> Locator:
    """Wait until a turn has its final state."""
    section = turn(page, number)
    await expect(section).to_have_attribute("data-live", "", timeout=TURN)
    return section
