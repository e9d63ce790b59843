"""Links into a chat of 10,000 entries: what they name is in view, at both sizes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.e2e import served as app
from tests.e2e.people import NAME, ended, turn
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

ENTRIES = 10_000
#: Of so many turns one reads two files, in a row that is folded.
EVERY = 100
_imported: dict[str, str] = {}
SIZES = {"desktop": (1280, 860), "phone": (390, 760)}


def _messages() -> Iterator[dict[str, Any]]:
    turn = 0
    while True:
        turn += 1
        yield {"role": "user", "content": f"Question {turn}: what of walnut{turn}?"}
        if turn % EVERY == 50:
            uses = [f"toolu_{turn}_{at}" for at in range(2)]
            yield {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": use, "name": "read_file", "input": {"path": "a.md"}}
                    for use in uses
                ],
            }
            yield {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": use, "content": f"Part of {use}\n" * 9}
                    for use in uses
                ],
            }
        words = f"Some words of answer {turn} that take a line or two. " * (1 + turn % 9)
        yield {"role": "assistant", "content": f"{words}\n\n```python\nanswer = {turn}\n```"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Give an app of its own, whose newest chat may be as long as this."""
    running = app.fork(tmp_path_factory.mktemp("deep") / "data")
    yield running
    running.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def long_chat(tab: Page, served: Served) -> str:
    """Give the address of the long chat, which the person of this tab has imported."""
    if served.url in _imported:
        return _imported[served.url]
    file = served.data / "long.jsonl"
    record = {"id": "long", "messages": list(islice(_messages(), ENTRIES))}
    file.write_text(json.dumps(record), encoding="utf-8")
    said = served.manage("import_conversation", str(file), "--user", NAME)
    found = re.search(r"[0-9a-f-]{36}", said)
    assert found is not None, said
    return _imported.setdefault(served.url, f"{served.url}/c/{found[0]}/")


#: The box of what the address names, or of what follows its anchor, and the room it is seen in.
_PLACE = """() => {
  const named = document.getElementById(location.hash.slice(1));
  const shown = named?.matches(".anchor") ? named.nextElementSibling : named;
  const box = shown?.getBoundingClientRect();
  return { top: box?.top, height: box?.height, name: location.hash,
    from: document.querySelector("main header, header").getBoundingClientRect().bottom - 1,
    to: document.querySelector(".dock").getBoundingClientRect().top };
}"""


async def _is_in_view(page: Page, seq: int) -> None:
    """Wait until the message is where a reader sees its beginning, and stays there."""
    await expect(page.locator(f"[id='m-{seq}']")).to_have_count(1)
    await page.wait_for_function(
        f"""seq => {{
          const at = ({_PLACE})();
          return at.name === `#m-${{seq}}` && at.height > 0 && at.top >= at.from && at.top < at.to;
        }}""",
        arg=seq,
    )


async def _leads_there(page: Page, address: str, seq: int) -> None:
    await page.goto(address)
    await _is_in_view(page, seq)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
async def test_a_link_into_a_chat_of_10_000_entries_leads_to_what_it_names(
    tab: Page, long_chat: str, served: Served, size: tuple[int, int]
) -> None:
    await tab.set_viewport_size({"width": size[0], "height": size[1]})
    # The first prompt, an early answer, results in a folded row, the middle, a late one, the last.
    for seq in (1, 22, 101, 5_000, 9_901, ENTRIES):
        await _leads_there(tab, f"{long_chat}?m={seq}#m-{seq}", seq)
    # Without the fragment, too, by which a browser scrolls by itself.
    await _leads_there(tab, f"{long_chat}?m=101", 101)
    await tab.goto(f"{served.url}/search/?q=walnut2500")
    await tab.locator(".hits a", has=tab.locator(".excerpt mark")).first.click()
    await tab.wait_for_url(re.compile(r"#m-\d+$"))
    await _is_in_view(tab, int(tab.url.rpartition("-")[2]))


async def test_a_link_to_what_an_edit_left_behind_leads_there(tab: Page, long_chat: str) -> None:
    await _leads_there(tab, f"{long_chat}?m=5#m-5", 5)
    await turn(tab, 3).locator(".prompt").hover()
    await turn(tab, 3).get_by_role("link", name="Edit").click()
    await tab.locator("#edit-3").fill("What time is it in Lima?")
    await tab.keyboard.press("Control+Enter")
    await ended(tab, ENTRIES // 2 - ENTRIES // 2 // EVERY + 1)
    await _leads_there(tab, f"{long_chat}?m=5000#m-5000", 5_000)
