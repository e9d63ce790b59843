"""Generated Markdown for measuring: any length, every kind of block, always the same."""

from __future__ import annotations

from itertools import count
from typing import Any

_PART = """## Section {n}

The **server** renders a closed block once and the tail again, so that its `cost` is linear in the
answer; a paragraph of usual length has some sixty words in it, a few of them *emphasised*.

- a first point with a [link](https://example.org/{n})
- a second point, a little longer than the first one was
- a third point

```python
def step(n: int) -> str:
    # one line of code
    return f"step {n}"
```

| name | value | note |
|---|---:|---|
| first | {n} | as it was |
| second | 22 | and so on |

So $x_{n} = \\frac{1}{n}$ follows from what was said.

"""

#: Answers by shape: the repeated text and the text before it.
SHAPES = {
    "markdown": ("", _PART),
    "one code block": ("```python\n", "value = [1, 2, 3]  # a line of code {n}\n"),
    "one paragraph": ("", "words of a paragraph that does not end, number {n}, "),
    "one table": ("| a | b |\n|---|---|\n", "| cell {n} | another cell |\n"),
    "one list": ("", "- item {n} of a list that goes on and on\n"),
    "one formula": ("$$\n", "a_{n} + b_{n} \\\\\n"),
}


def make_answer(length: int, shape: str = "markdown") -> str:
    """Return an answer of `length` characters."""
    opening, part = SHAPES[shape]
    pieces, size = [opening], len(opening)
    for number in count():
        if size >= length:
            break
        pieces.append(part.replace("{n}", str(number)))
        size += len(pieces[-1])
    return "".join(pieces)[:length]


def make_record(name: str, turns: int, rounds: int = 0) -> dict[str, Any]:
    """Return a conversation in the importer's format; `rounds` is the tool rounds of a turn."""
    messages: list[dict[str, Any]] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"Question {turn} of {name}, about walnuts"})
        for at in range(rounds):
            use = f"toolu_{turn}_{at}"
            call = {"type": "tool_use", "id": use, "name": "read_file", "input": {"path": "a.md"}}
            text = {"type": "text", "text": f"I look at part {at}."}
            result = {"type": "tool_result", "tool_use_id": use, "content": f"Part {at}\n" * 60}
            messages.append({"role": "assistant", "content": [text, call]})
            messages.append({"role": "user", "content": [result]})
        messages.append({"role": "assistant", "content": f"Answer {turn}\n\n" + make_answer(500)})
    return {"id": name, "title": name, "messages": messages}
