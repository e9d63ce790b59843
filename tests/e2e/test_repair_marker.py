"""The line of a repair in a chat: readable at every width, in words that need no explanation."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

import pytest
from playwright.async_api import Page, expect

from tests.e2e.conftest import picture
from tests.e2e.people import NAME, ended, say, set_up
from tests.e2e.served import Served
from tests.e2e.test_import import rows

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
USE = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
FOUND = {"type": "tool_result", "tool_use_id": "t1", "content": "blue"}
BROKEN = {
    "id": "broken elsewhere",
    "messages": [
        {"role": "user", "content": "Find it"},
        {"role": "assistant", "content": [USE]},
        {"role": "user", "content": [FOUND, FOUND]},
        {"role": "assistant", "content": "It is blue."},
    ],
}
LOOKS = [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)]


async def test_what_was_put_right_is_said_in_a_line_that_fits(
    page: Page, served: Served, tmp_path: Path
) -> None:
    await set_up(page, served)
    file = tmp_path / "broken.jsonl"
    file.write_text(json.dumps(BROKEN), encoding="ascii")
    served.manage("import_conversation", str(file), "--user", NAME)
    [(public_id,)] = rows(
        served,
        "SELECT public_id FROM conversations_conversation"
        " WHERE id = (SELECT max(id) FROM conversations_conversation)",
    )
    await page.goto(f"{served.url}/c/{UUID(str(public_id))}/")
    await say(page, "Hello, let us go on")
    await ended(page, 2)
    marker = page.locator("aside.marker")
    await expect(marker).to_have_count(1)
    await expect(marker).to_contain_text("Put right for the model")
    await expect(marker).to_contain_text("You can still read it here.")
    for scheme, width in LOOKS:
        await page.set_viewport_size({"width": width, "height": 844})
        await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        await marker.scroll_into_view_if_needed()
        box = await marker.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        await picture(page, f"repair {scheme} {width}")
    await marker.get_by_role("link", name="What changed").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Put right for the model")
    words = page.get_by_text("more than one result for t1")
    await expect(words).to_be_hidden()
    await page.get_by_text("In the words of the API").click()
    await expect(words).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    await picture(page, "repair what changed")
