"""A person attaches files by button, clipboard and mouse; they are sent, and they stay."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.e2e.conftest import Snap, Watch
from tests.e2e.people import CHAT, ended, set_up
from tests.e2e.served import PROJECT, Served
from tests.e2e.test_access import judge
from tests.support import small_files

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

#: Gives the page files as a clipboard or a mouse would.
GIVE = """([kind, selector, files, text]) => {
  const data = new DataTransfer();
  for (const [name, type, base64] of files) {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    data.items.add(new File([bytes], name, { type }));
  }
  if (text) data.setData("text/plain", text);
  const bubbles = { bubbles: true, cancelable: true };
  const event = kind === "paste"
    ? new ClipboardEvent(kind, { ...bubbles, clipboardData: data })
    : new DragEvent(kind, { ...bubbles, dataTransfer: data });
  document.querySelector(selector).dispatchEvent(event);
}"""


def file(name: str, kind: str, data: bytes) -> dict[str, Any]:
    return {"name": name, "mimeType": kind, "buffer": data}


async def give(page: Page, event: str, *files: dict[str, Any], text: str = "") -> None:
    sent = [[f["name"], f["mimeType"], base64.b64encode(f["buffer"]).decode()] for f in files]
    where = "textarea[name=text]" if event == "paste" else "#main"
    await page.evaluate(GIVE, [event, where, sent, text])


def chip(page: Page, name: str) -> Any:
    return page.locator("#waiting .file-chip", has_text=name)


async def new_chat(page: Page, served: Served) -> None:
    await set_up(page, served)
    await page.goto(f"{served.url}/c/new/")


CAT = file("cat.png", "image/png", small_files.png(640, 480))
OFFICE = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
PAPER = file("report.pdf", "application/pdf", small_files.pdf(3))


async def test_files_come_in_by_every_way_and_are_sent_and_stay(
    page: Page, served: Served, snap: Snap
) -> None:
    await new_chat(page, served)
    await page.set_input_files("#file-input", [CAT, PAPER])
    await expect(chip(page, "cat.png").locator("img")).to_be_visible()
    await expect(chip(page, "report.pdf")).to_contain_text("3 pages")
    await give(
        page, "paste", file("image.png", "image/png", small_files.png(80, 60, (120, 30, 90)))
    )
    await give(page, "dragover", CAT)
    await expect(page.get_by_text("Drop to attach")).to_be_visible()
    await snap("files dropping")
    await give(page, "drop", file("notes.txt", "text/plain", b"First line of the notes."))
    await expect(page.get_by_text("Drop to attach")).to_be_hidden()
    await expect(page.locator("#waiting .file-chip[data-file]")).to_have_count(4)
    await expect(page.locator("#waiting-sum")).to_contain_text("+ about")
    await snap("files waiting")
    await chip(page, "notes.txt").get_by_role("button", name="Remove notes.txt").click()
    await expect(page.locator("#waiting .file-chip")).to_have_count(3)
    await page.reload()
    await expect(page.locator("#waiting .file-chip[data-file]")).to_have_count(3)
    await page.fill("textarea[name=text]", "What is this?")
    await page.keyboard.press("Enter")
    await page.wait_for_url(CHAT)
    section = await ended(page, 1)
    await expect(section).to_contain_text("a PNG image, 640 × 480 pixels")
    await expect(section).to_contain_text("a PDF named “report.pdf” with 3 pages")
    await expect(page.locator("#waiting .file-chip")).to_have_count(0)
    await page.reload()
    image = page.locator("#turn-1 img.attached").first
    await image.scroll_into_view_if_needed()
    await expect(image).to_be_visible()
    assert await image.evaluate(
        "async (node) => { await node.decode(); return node.naturalWidth; }"
    )
    await expect(page.locator("#turn-1 .file-card")).to_contain_text("report.pdf")
    await snap("files sent")
    await page.goto(f"{served.url}/c/new/")
    await expect(page.locator("#waiting .file-chip")).to_have_count(0)
    await page.goto(f"{served.url}/files/attached/")
    await expect(page.locator(".file-rows li")).to_have_count(3)
    await snap("files page")


async def test_a_file_alone_is_a_message_and_a_second_one_follows(
    page: Page, served: Served
) -> None:
    await new_chat(page, served)
    await page.set_input_files("#file-input", [CAT])
    await expect(chip(page, "cat.png").locator("img")).to_be_visible()
    await page.locator("#send").click()
    await page.wait_for_url(CHAT)
    await expect(await ended(page, 1)).to_contain_text("I see one file")
    await page.set_input_files("#file-input", [PAPER])
    # Sent at once: the form waits for the upload.
    await page.locator("textarea[name=text]").press("Enter")
    await expect(await ended(page, 2)).to_contain_text("report.pdf")
    await expect(page.locator("#waiting .file-chip")).to_have_count(0)
    await expect(page.locator("#composer-error")).to_be_empty()


async def test_what_the_model_reads_of_a_document_is_shown_before_and_after_it_is_sent(
    page: Page, served: Served, watch: Watch, snap: Snap
) -> None:
    await new_chat(page, served)
    deck = (PROJECT / "tests/data/deck.pptx").read_bytes()
    locked = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le")
    await page.set_input_files(
        "#file-input", [file("plan.pptx", OFFICE, deck), file("locked.xlsx", OFFICE, locked)]
    )
    await expect(chip(page, "locked.xlsx")).to_contain_text("is locked with a password")
    watch.errors.clear()  # the browser writes down every refusal of the server
    await chip(page, "locked.xlsx").locator("[data-remove]").click()
    await expect(chip(page, "plan.pptx")).to_contain_text("PPTX")
    async with page.expect_popup() as opened:
        await chip(page, "plan.pptx").get_by_role("link", name="What the model reads").click()
    preview = await opened.value
    await expect(preview.locator(".file-text")).to_contain_text("Notes: Say this slowly & clearly.")
    assert await judge(preview, "/files/ID/text/") == []
    await preview.close()
    await page.fill("textarea[name=text]", "What is this?")
    await page.keyboard.press("Enter")
    await page.wait_for_url(CHAT)
    await ended(page, 1)
    await page.locator("#turn-1 .file-card").click()
    await expect(page.locator(".file-text")).to_contain_text("[slide 2 of 4, hidden]")
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Download the file").click()
    assert (await download.value).suggested_filename == "plan.pptx"
    await snap("files document")


async def test_a_message_waits_for_its_files_and_is_not_sent_when_it_is_changed_meanwhile(
    page: Page, served: Served
) -> None:
    await new_chat(page, served)
    arrives = asyncio.Event()

    async def wait(route: Route) -> None:
        await arrives.wait()
        await route.continue_()

    await page.route("**/files/attached/", wait)
    await page.locator("#file-input").set_input_files(CAT)
    await page.fill("#text", "Look at this")
    await page.keyboard.press("Enter")
    note = page.locator("#composer-error")
    await expect(note).to_have_text("Sent as soon as the files are uploaded.")
    await page.keyboard.type(", but tell")
    await expect(note).to_be_empty()
    arrives.set()
    await expect(chip(page, "cat.png").locator("img")).to_be_visible()
    await expect(page.locator("#text")).to_have_value("Look at this, but tell")
    arrives.clear()
    await page.locator("#file-input").set_input_files(PAPER)
    await page.keyboard.press("Enter")
    await expect(note).to_have_text("Sent as soon as the files are uploaded.")
    arrives.set()
    await page.wait_for_url(CHAT)
    await expect(await ended(page, 1)).to_contain_text("report.pdf")


async def test_a_long_paste_becomes_a_file_and_can_be_text_again(
    page: Page, served: Served, snap: Snap
) -> None:
    await new_chat(page, served)
    await give(page, "paste", text="Short enough.")
    await expect(page.locator("#waiting .file-chip")).to_have_count(0)
    long = "A line of a long text that somebody pasted.\n" * 300
    await give(page, "paste", text=long)
    pasted = chip(page, "pasted text.txt")
    await expect(pasted).to_contain_text("tokens")
    assert await page.input_value("textarea[name=text]") == ""
    await snap("files long paste")
    await pasted.get_by_role("button", name="Insert as text instead").click()
    await expect(page.locator("#waiting .file-chip")).to_have_count(0)
    assert await page.input_value("textarea[name=text]") == long


async def test_what_cannot_be_taken_is_said_before_it_is_uploaded(
    page: Page, served: Served, watch: Watch, snap: Snap
) -> None:
    await new_chat(page, served)
    await page.set_input_files(
        "#file-input",
        [
            file("huge.png", "image/png", b"a" * 4_000_000),
            file("film.mp4", "video/mp4", b"0000"),
        ],
    )
    await expect(chip(page, "huge.png")).to_contain_text("at most 3.9 MB are taken")
    await expect(chip(page, "film.mp4")).to_contain_text("Files of this kind are not taken")
    assert not [url for url in watch.requests if url.endswith("/files/attached/")]
    await page.set_input_files("#file-input", [file("liar.png", "image/png", b"MZ\x90\0")])
    await expect(chip(page, "liar.png")).to_contain_text("Files of this kind are not taken")
    await snap("files refused")
    await page.fill("textarea[name=text]", "Send it anyway.")
    await page.keyboard.press("Enter")
    await expect(page.locator("#composer-error")).to_contain_text("Remove it or try again")
    for _ in range(3):
        await page.locator("#waiting [data-remove]").first.click()
    await expect(page.locator("#waiting .file-chip")).to_have_count(0)
    watch.errors.clear()  # the browser writes down every refusal of the server


async def test_a_photo_is_scaled_down_to_what_many_of_them_may_have(
    page: Page, served: Served
) -> None:
    await new_chat(page, served)
    photo = file("photo.png", "image/png", small_files.png(4_000, 3_000))
    await page.set_input_files("#file-input", [photo])
    await expect(chip(page, "photo.png")).to_contain_text("2000 × 1500", timeout=60_000)
    await expect(chip(page, "photo.png")).to_contain_text("scaled down")
    await chip(page, "photo.png").locator("[data-remove]").click()


async def test_other_files_make_another_message_without_https_too(
    page: Page, served: Served
) -> None:
    """Two tabs that send one id send one message; on plain HTTP nothing makes ids by itself."""
    await page.add_init_script("delete Crypto.prototype.randomUUID")
    await new_chat(page, served)
    await page.fill("#text", "Read this")
    ids = "() => [document.querySelector('[name=client_id]').value, %s]"
    kept = "Object.entries(localStorage).find(([key]) => key.startsWith('draft:'))[1]"
    ids %= f"JSON.parse({kept}).id"
    before = await page.evaluate(ids)
    await page.set_input_files("#file-input", [file("notes.txt", "text/plain", b"of the week")])
    await expect(page.locator("#waiting [data-file]")).to_have_count(1)
    shown, stored = await page.evaluate(ids)
    assert before[0] == before[1] != shown == stored
