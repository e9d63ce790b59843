"""Reading an answer: formulas, code, other scripts, copying, the keyboard, what is announced."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.e2e.people import CHAT, NAME, ended, set_up, start_chat
from tests.e2e.served import Served

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]
ANSWER = r"""The mass is $E = mc^2$, and

$$\int_0^1 x^2\,dx = \frac{1}{3}$$

مرحبا بالعالم

日本語の文章です。

| role | pay |
|:--|--:|
| dev | 650 |

```python
print("bring milk")
```"""


#: Pixels between the end of a paragraph's text and the right edge of its box.
GAP = """node => {
  const range = document.createRange();
  range.selectNodeContents(node);
  return node.getBoundingClientRect().right - range.getBoundingClientRect().right;
}"""


async def imported(
    page: Page, served: Served, folder: Path, name: str = "shown", answer: str = ANSWER
) -> None:
    """Open a conversation of one answer, which holds everything."""
    said = [{"role": "user", "content": "Show me"}, {"role": "assistant", "content": answer}]
    file = folder / f"{name}.jsonl"
    file.write_text(json.dumps({"id": name, "messages": said}), encoding="utf-8")
    served.manage("import_conversation", str(file), "--user", NAME)
    await page.goto(f"{served.url}/")
    await page.locator("#rows a.row", has_text=f"{name} · Show me").click()
    await page.wait_for_url(CHAT)


async def test_an_answer_is_read_and_copied(page: Page, served: Served, tmp_path: Path) -> None:
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await set_up(page, served)
    await imported(page, served, tmp_path)
    formulas = page.locator(".prose math")
    await expect(formulas).to_have_count(2)
    size = await formulas.last.bounding_box()
    assert size is not None
    assert size["height"] > 20, "a fraction is taller than a line"
    arabic = page.locator(".prose p", has_text="مرحبا")
    assert await arabic.evaluate(GAP) < 2, "it begins at the right"
    await expect(page.locator(".prose p", has_text="日本語")).to_be_visible()
    await expect(page.locator(".prose td", has_text="650")).to_be_visible()
    await expect(page.locator(".prose pre .nb")).to_have_text("print")
    # A shadow of the box, and a cover of what is scrolled, on either side.
    for wide in ("div.table", ".formula"):
        style = "node => getComputedStyle(node).backgroundAttachment"
        shown = await page.locator(f".prose {wide}").evaluate(style)
        assert shown == "local, local, scroll, scroll"
    await page.locator(".code").hover()
    await page.locator(".code > [data-copy]").click()
    await expect(page.locator("#announcer")).to_have_text("Copied")
    copied = "navigator.clipboard.readText()"
    assert (await page.evaluate(copied)).strip() == 'print("bring milk")'
    await page.locator("footer [data-copy='answer']").click()
    await expect(page.locator("footer [data-copy='answer']")).to_have_text("Copied")
    assert await page.evaluate(copied) == ANSWER


async def test_a_table_begins_on_the_side_where_its_script_does(
    page: Page, served: Served, tmp_path: Path
) -> None:
    arabic = "| الاسم | العدد | السبب |\n|---|--:|---|\n| API | 12 | لذيذ |\n| تفاح | سبعة | أصفر |"
    latin = "| word | means |\n|---|---|\n| red | أحمر |"
    wide = "\n".join("|" + part * 30 for part in (" عمود |", "---|", " قيمة |"))
    await set_up(page, served)
    await imported(
        page, served, tmp_path, "scripts", f"{arabic}\n\n{latin}\n\n{wide}\n\nتفاح وموز."
    )
    tables = page.locator(".prose .table")
    cells = "nodes => nodes.map(node => node.getBoundingClientRect().x)"
    first, number, last = await tables.nth(0).locator("tr").nth(1).locator("td").evaluate_all(cells)
    assert first > number > last
    sides = "nodes => nodes.map(node => getComputedStyle(node).textAlign)"
    of_arabic = await tables.nth(0).locator("th, td").evaluate_all(sides)
    assert of_arabic == ["right", "left", "right"] * 3
    assert await tables.nth(1).locator("th, td").evaluate_all(sides) == ["left"] * 4
    begins = tables.nth(2).locator("th").first
    await expect(begins).to_be_in_viewport(ratio=1)
    exported = await page.request.get(f"{page.url}export.html")
    file = await page.context.new_page()
    await file.set_content(await exported.text())
    assert await file.locator("p", has_text="تفاح وموز").evaluate(GAP) < 2
    await expect(file.locator(".table").first).to_have_css("direction", "rtl")


async def test_what_is_wider_than_the_page_scrolls_by_the_keyboard(
    page: Page, served: Served, tmp_path: Path
) -> None:
    await set_up(page, served)
    narrow = "| a | b |\n|---|---|\n| 1 | 2 |"
    wide = "\n".join("|" + part * 30 for part in (" column |", "---|", " value |"))
    await imported(page, served, tmp_path, "tables", f"{narrow}\n\n{wide}\n")
    tables = page.locator(".prose .table")
    await expect(tables.last).to_have_attribute("tabindex", "0")
    assert await tables.first.get_attribute("tabindex") is None
    await tables.last.focus()
    await page.keyboard.press("ArrowRight")
    await expect(tables.last).not_to_have_js_property("scrollLeft", 0)


async def test_a_chat_needs_no_mouse_and_says_states_not_tokens(page: Page, served: Served) -> None:
    await set_up(page, served)
    await page.goto(f"{served.url}/c/new/")
    await page.evaluate("document.body.tabIndex = -1; document.body.focus()")
    await page.keyboard.press("Tab")
    await expect(page.locator(".skip")).to_be_focused()
    await page.keyboard.press("Shift+Escape")
    await expect(page.locator("#text")).to_be_focused()
    await start_chat(page, served, "Answer in 60 words")
    await ended(page, 1)
    announcer = page.locator("#announcer")
    await expect(announcer).to_have_text(re.compile(r"Done, \d+ words"))
    assert await page.locator("#transcript").get_attribute("aria-live") == "off"
    await expect(page.locator("#meter .figures").first).to_contain_text("/ 100k")
    await page.keyboard.press("Shift+Escape")
    await page.keyboard.press("Shift+Tab")
    reached = set()
    for _ in range(14):
        name = "document.activeElement.getAttribute('data-copy') ?? document.activeElement.id"
        reached.add(await page.evaluate(name))
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        assert await page.evaluate(outline) != "none", await page.evaluate(name)
        await page.keyboard.press("Shift+Tab")
    assert "answer" in reached


async def test_a_printed_chat_has_its_title_all_its_text_and_nothing_to_press(
    page: Page, served: Served, tmp_path: Path
) -> None:
    await set_up(page, served)
    wide = " | ".join(f"column{'s' * 12}{n}" for n in range(14))
    code = "print('" + "a line that is wider than the page " * 8 + "')"
    answer = f"| {wide} |\n|{'---|' * 14}\n| {wide} |\n\n```python\n{code}\n```"
    await imported(page, served, tmp_path, "paper", answer)
    # As wide as a sheet of A4.
    await page.set_viewport_size({"width": 720, "height": 1000})
    await page.emulate_media(media="print")
    await expect(page.locator("h1")).to_be_visible()
    for block in (".prose pre", ".prose .table"):
        await expect(page.locator(block).first).to_be_visible()
        cut = "nodes => nodes.filter((node) => node.scrollWidth > node.clientWidth + 1).length"
        assert await page.locator(block).evaluate_all(cut) == 0, block
    await page.set_viewport_size({"width": 1280, "height": 860})
    await page.emulate_media(media="screen")
    await start_chat(page, served, "Show me a table, for the paper")
    await ended(page, 1)
    await page.get_by_role("button", name="Regenerate").click()
    await ended(page, 2)
    await expect(page.locator("#live .turn-versions")).to_contain_text("2/2")
    await page.get_by_role("link", name="Context inspector").first.click()
    await expect(page.locator("#inspector .makeup-bar")).to_be_visible()
    await page.locator("html").evaluate("node => { node.dataset.theme = 'dark' }")
    await page.emulate_media(media="print")
    for part in (
        ".skip", ".sidebar", ".dock", ".turn-versions", ".foot a", ".bar a", ".thinking",
        ".code > button", "#inspector",
    ):  # fmt: skip
        assert await page.locator(f"{part}:visible").count() == 0, part
    ink = "node => getComputedStyle(node).color.match(/[\\d.]+/g).slice(0, 3).map(Number)"
    assert max(await page.locator("#live .prose p").first.evaluate(ink)) < 100
    # As for a reader of a shared chat, who has chosen no colours, on a dark machine.
    await page.locator("html").evaluate("node => { delete node.dataset.theme }")
    await page.emulate_media(media="print", color_scheme="dark")
    assert max(await page.locator("#live .prose p").first.evaluate(ink)) < 100
    await page.emulate_media(media="screen", color_scheme="light")
