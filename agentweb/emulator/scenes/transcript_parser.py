"""Parse who said what from a conversation in any form in which a request shows it.

A summary call shows it as messages, or as one text: fenced parts, lines such as `[user]`,
`[calls fetch_url as toolu_1] {...}` and `[result of toolu_1] ...`, or `User: ...`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from agentweb.emulator.scenes.view import Request, blocks, result_text, texts

Who = Literal["user", "assistant", "call", "result", "summary", "order"]

_FENCE = re.compile(r"^<(/?)(transcript|first_request|previous_summary)>$")
_MARKER = re.compile(r"^\[(END )?CONTEXT SUMMARY\]$")
_ROLE = re.compile(r"^\[(user|assistant)\]$")
_TOOL = re.compile(r"^\[(calls|result of) [^\]]*\]")
_INLINE = re.compile(
    r"^\W{0,4}(?:\d+[.:)]?\s*)?(user|human|prompt|assistant|answer|tool|result)s?\b"
    r"([^:\n]{0,60}):\W{0,3}\s*(.*)$",
    re.IGNORECASE,
)
_SHOWN = re.compile(r"^(?:<transcript>|\[user\]|user: )", re.IGNORECASE | re.MULTILINE)
_ORDER = re.compile(
    r"^(?:later messages still refer to these|write the summary now|your previous attempt was not|"
    r"summari[sz]e (?:the|this) conversation|now compress the older part of the conversation)",
    re.IGNORECASE,
)
_NAMES: dict[str, Who] = {
    "user": "user",
    "human": "user",
    "prompt": "user",
    "assistant": "assistant",
    "answer": "assistant",
    "tool": "result",
    "result": "result",
}


@dataclass(frozen=True, slots=True)
class Line:
    who: Who
    text: str


def read_lines(request: Request) -> list[Line]:
    """Return every line in view with its speaker, `order` for instructions to summarise."""
    found: list[Line] = []
    for message in request.messages:
        for block in blocks(message):
            if block["type"] == "text":
                found += _lines(block["text"], "user" if message["role"] == "user" else "assistant")
            elif block["type"] == "tool_result":
                found += _lines(result_text(block), "result", plain=True)
            else:
                found += [
                    Line("call", line)
                    for text in texts({"role": "assistant", "content": [block]})
                    for line in text.splitlines()
                ]
    return [line for line in found if line.text]


def _lines(text: str, who: Who, *, plain: bool = False) -> Iterator[Line]:
    if plain:
        yield from (Line(who, " ".join(line.split())) for line in text.splitlines())
        return
    speaker: Who = "order" if _SHOWN.search(text) else who
    for raw in text.splitlines():
        line = " ".join(raw.split())
        speaker, rest = _turn(line, speaker)
        yield Line(speaker, rest)


def _turn(line: str, speaker: Who) -> tuple[Who, str]:
    """Return the speaker from this line on, and the spoken text of the line."""
    if _ORDER.match(line):
        return "order", line
    if fence := _FENCE.match(line):
        fences: dict[str, Who] = {"first_request": "user", "previous_summary": "summary"}
        return ("order" if fence[1] else fences.get(fence[2], "order")), ""
    if marker := _MARKER.match(line):
        return ("user" if marker[1] else "summary"), ""
    if role := _ROLE.match(line):
        return _NAMES[role[1]], ""
    if tool := _TOOL.match(line):
        return ("call" if tool[1] == "calls" else "result"), line
    inline = _INLINE.match(line)
    if inline is None or (speaker == "result" and inline[2]):
        return speaker, line
    named = _NAMES[inline[1].lower()]
    if inline[2]:
        return ("call" if named == "assistant" else named), line
    return named, inline[3]
