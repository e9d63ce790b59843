"""A long scripted answer, and what a browser shows of a turn: now, and when it is loaded anew."""

from __future__ import annotations

from playwright.async_api import Page, expect

from agentweb.emulator.script import Script, say, think, when
from tests.e2e.people import turn

_PART = """## Part {n}

Some **bold** words, `code` and $x_{n}^2$ in a paragraph of usual length, so that lines break where
the page is narrow and the height of what is written grows while one reads.

- an item
- another item

```python
def part_{n}() -> int:
    return {n}
```

| a | b |
|---|---|
| {n} | two |

"""
LONG = "".join(_PART.replace("{n}", str(n)) for n in range(9)) + "the last word"
SCRIPT = Script(
    [when("long one", think("Thinking first.\n" * 8), say(LONG)), when("", say("Yes."))]
)
#: What a turn is: its elements and words, without what differs by the moment or by script.
_DOM = """(id) => {
  const copy = document.getElementById(id).cloneNode(true);
  const moment = "time, .code > button, .status, .foot, [name=csrfmiddlewaretoken]";
  for (const node of copy.querySelectorAll(moment)) node.remove();
  for (const node of [copy, ...copy.querySelectorAll("*")])
    for (const { name, value } of [...node.attributes])
      if (/^(hx-.*|data-hx.*|tabindex|open|data-done|title)$/.test(name)
          || (name === "class" && /htmx|is-new/.test(value))) node.removeAttribute(name);
  // The parts of a block that was streamed.
  for (const part of copy.querySelectorAll("pre > code + code, tbody + tbody")) {
    part.previousElementSibling.append(...part.childNodes);
    part.remove();
  }
  copy.normalize();
  return copy.outerHTML.replace(/\\s+/g, " ").replace(/> </g, "><");
}"""


async def shown(page: Page, number: int = 1) -> str:
    return str(await page.evaluate(_DOM, f"turn-{number}"))


async def stored(page: Page, number: int = 1) -> str:
    """Give a turn as a fresh load shows it."""
    fresh = await page.context.new_page()
    await fresh.goto(page.url)
    await expect(turn(fresh, number)).to_be_visible()
    found = await shown(fresh, number)
    await fresh.close()
    return found


async def answer_begun(page: Page, number: int = 1) -> None:
    """Wait until the answer has text."""
    section = turn(page, number)
    await expect(section.locator(".prose").first).not_to_be_empty(timeout=60_000)
