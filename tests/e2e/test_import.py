"""Recorded conversations open, go on, and every request they lead to is valid."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from uuid import UUID

import pytest
from playwright.async_api import Page, expect

from tests.e2e.conftest import picture
from tests.e2e.people import NAME, ended, say, set_up
from tests.e2e.served import Served
from tests.support.recorded_conversations import recorded_files

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
FILES = recorded_files("dev")


@pytest.mark.skipif(not FILES, reason="the recorded conversations are not beside the project")
@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name.split(".")[0])
async def test_a_recorded_conversation_opens_and_goes_on(
    page: Page, served: Served, file: Path
) -> None:
    await set_up(page, served)
    served.manage("import_conversation", str(file), "--user", NAME, "--limit", "1")
    [(public_id, turns)] = rows(
        served,
        "SELECT c.public_id, max(t.number) FROM conversations_conversation c"
        " JOIN conversations_turn t ON t.conversation_id = c.id"
        " WHERE c.id = (SELECT max(id) FROM conversations_conversation) GROUP BY c.id",
    )
    await page.goto(f"{served.url}/c/{UUID(str(public_id))}/")
    await expect(page.locator(f"#turn-{turns}")).to_be_visible()
    await picture(page, f"imported {file.name.split('.')[0]}")
    await say(page, "Hello, let us go on")
    section = await ended(page, int(str(turns)) + 1)
    await expect(section.locator(".prose").first).not_to_be_empty()
    statuses = rows(
        served,
        "SELECT DISTINCT r.status FROM conversations_apiresult r"
        " JOIN conversations_apicall c ON c.id = r.call_id"
        " WHERE c.conversation_id = (SELECT max(id) FROM conversations_conversation)",
    )
    assert statuses == [("complete",)]
    await page.goto("about:blank")


async def test_a_file_that_is_too_big_is_refused_before_it_is_uploaded(
    page: Page, served: Served
) -> None:
    await set_up(page, served)
    for path in ("/settings/data/", "/settings/prompts/", "/files/"):
        await page.goto(f"{served.url}{path}")
        form = page.locator("form[data-most]")
        assert int(await form.get_attribute("data-most") or "") >= 4_000_000
        await form.evaluate("form => { form.dataset.most = '3'; }")
        file = form.locator("[type=file]")
        for name, is_big in (("small.json", False), ("large$&.json", True)):
            body = b"12345" if is_big else b"1"
            chosen = {"name": name, "mimeType": "application/json", "buffer": body}
            await file.set_input_files([chosen])  # type: ignore[list-item]
            words = f"{name} is too big: a file may have at most" if is_big else ""
            await expect(form.locator("[role=status]")).to_contain_text(words)
            assert await file.evaluate("file => file.checkValidity()") is not is_big


def rows(served: Served, sql: str) -> list[tuple[object, ...]]:
    database = sqlite3.connect(f"file:{served.database}?mode=ro", uri=True)
    try:
        return database.execute(sql).fetchall()
    finally:
        database.close()
