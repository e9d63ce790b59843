"""Answers of an exact length, for long streams: "Answer in 5000 words".

`in 5000 words of Markdown` has lists, code and tables between the paragraphs; "Answer in 20,000
characters" counts characters.
"""

from __future__ import annotations

import re
from itertools import count

from agentweb.emulator.scenes.scene import Reply, say
from agentweb.emulator.scenes.view import Request

_ORDER = re.compile(
    r"\b(?:answer|reply|write|respond)\b[^.\n]{0,40}?\bin\s+([\d,]+)\s+(words?|characters?|chars?)(\s+of\s+markdown)?",
    re.IGNORECASE,
)
_MOST = 5_000_000
_WORD = re.compile(r"\S+")
_MARKUP = """## Part {n}

{words}

- the first of **two** points, with `code`
- the second, with a [link](https://example.org/{n})

```python
def part_{n}(value: int) -> int:
    return value + {n}  # one more
```

| name | value |
|---|---:|
| part | {n} |"""
_SENTENCES = (
    "A stream is only as calm as the slowest reader behind it.",
    "Every delta carries a few characters, and none of them may be lost.",
    "What was shown is kept, whatever happens to the connection.",
    "The view is derived from the log, never the other way round.",
    "A long answer is many short ones that arrive in order.",
    "Numbers help to see where a text was cut, so here is one: {n}.",
)


def long_answer(request: Request) -> Reply | None:
    found = _ORDER.search(request.prompt)
    if found is None:
        return None
    size = min(int(found[1].replace(",", "")), _MOST)
    if found[2].lower().startswith("w"):
        return say(_marked_up(size) if found[3] else _words(size))
    return say(_characters(size))


def _words(size: int) -> str:
    words: list[str] = []
    for number in count(1):
        if len(words) >= size:
            break
        words += _paragraph(number).split()
    lines = [" ".join(words[at : at + 80]) for at in range(0, size, 80)]
    if size % 80:
        lines[-1] = " ".join(words[size - size % 80 : size])
    return "\n\n".join(lines)


def _marked_up(size: int) -> str:
    text = "\n\n".join(_MARKUP.format(n=n, words=_paragraph(n)) for n in range(size // 60 + 1))
    found = list(_WORD.finditer(text))
    return text[: found[size - 1].end()] if size <= len(found) else text


def _characters(size: int) -> str:
    parts: list[str] = []
    left = size
    for number in count(1):
        if left <= 0:
            break
        parts.append(f"{_paragraph(number)}\n\n")
        left -= len(parts[-1])
    text = "".join(parts)[:size]
    return text[:-2] + ".." if text.endswith("\n\n") else text


def _paragraph(number: int) -> str:
    return " ".join(sentence.format(n=number) for sentence in _SENTENCES)
