"""A search of the web in a browser: turned on by the person, a card, sources under the answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.e2e.conftest import Snap
from tests.e2e.people import NAME, ended, say, set_up, start_chat
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


async def fits(page: Page) -> bool:
    return bool(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


async def test_a_person_turns_search_on_and_reads_what_an_answer_cites(
    page: Page, served: Served, snap: Snap
) -> None:
    await set_up(page, served)
    await start_chat(page, served, "Search the web for black tea")
    first = await ended(page, 1)
    await expect(first.locator(".sources")).to_have_count(0)
    chat = page.url
    await page.goto(f"{chat}tools/")
    await page.get_by_text("On, and nothing private is read in this chat").click()
    await snap("tools with search")
    await page.set_viewport_size({"width": 390, "height": 844})
    assert await fits(page)
    await snap("tools with search phone")
    await page.set_viewport_size({"width": 1280, "height": 860})
    await page.get_by_role("button", name="Save").click()
    await page.wait_for_url(chat)
    await say(page, "Search the web 2 times for green tea")
    second = await ended(page, 2)
    source = second.locator(".sources a")
    await expect(source).to_have_attribute("href", "https://pages.example/green-tea-2")
    await expect(source).to_have_attribute("rel", "noopener noreferrer nofollow")
    await second.locator("details.tools summary").first.click()
    await second.locator("details.tool summary").first.click()
    await expect(second.locator("details.tool pre").last).to_be_attached()
    await snap("search answer")
    await page.emulate_media(color_scheme="dark")
    await page.set_viewport_size({"width": 390, "height": 844})
    assert await fits(page)
    await snap("search answer phone dark")


def cited(text: str, **citation: object) -> dict[str, object]:
    return {"type": "text", "text": text, "citations": [{"cited_text": "Green tea.", **citation}]}


#: Whitespace keeps the cited texts apart, as the API does it.
CITING = [
    {"type": "text", "text": "\n\n"},
    {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {"query": "tea"},
    },
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
    {"type": "text", "text": "This is known of tea: "},
    cited(
        "it is brewed at 80 degrees",
        type="web_search_result_location",
        url="https://pages.example/green-tea",
        title="All about green tea",
        encrypted_index="x",
    ),
    {"type": "text", "text": " "},
    cited(
        "and for three minutes.",
        type="page_location",
        document_index=0,
        document_title="Handbook of tea",
        start_page_number=3,
        end_page_number=5,
    ),
    {"type": "text", "text": "\n\n"},
    cited(
        "It came from China.",
        type="char_location",
        document_index=1,
        document_title=None,
        start_char_index=0,
        end_char_index=10,
    ),
    {"type": "text", "text": " "},
    cited(
        "It keeps a year.",
        type="search_result_location",
        source="https://notes.example/tea/how-long-does-green-tea-keep-in-a-tin-that-is-opened-daily",
        title="<b>Notes</b>",
        search_result_index=0,
        start_block_index=0,
        end_block_index=1,
    ),
]


async def test_what_an_answer_cites_of_any_kind_is_a_footnote(
    page: Page, served: Served, snap: Snap, tmp_path: Path
) -> None:
    await set_up(page, served)
    asked = {"role": "user", "content": "What is known of tea?"}
    record = {"id": "tea", "messages": [asked, {"role": "assistant", "content": CITING}]}
    file = tmp_path / "cited.jsonl"
    file.write_text(json.dumps(record))
    served.manage("import_conversation", str(file), "--user", NAME)
    await page.goto(served.url)
    await page.get_by_role("link", name="What is known of tea?").first.click()
    answer = page.locator("article.turn, .turn").last
    sources = answer.locator(".sources li")
    await expect(sources).to_have_count(4)
    await expect(sources.nth(1)).to_contain_text("Handbook of tea")
    await expect(sources.nth(1)).to_contain_text("pages 3 to 4")
    await expect(sources.nth(2)).to_contain_text("Document 2")
    await expect(sources.nth(3).locator("a")).to_have_text("<b>Notes</b>")
    await snap("citations")
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        await page.set_viewport_size({"width": 390, "height": 844})
        assert await fits(page)
        await answer.locator(".sources").scroll_into_view_if_needed()
        await snap(f"citations phone {scheme}")
    await page.set_viewport_size({"width": 1280, "height": 860})
    await snap("citations dark")
