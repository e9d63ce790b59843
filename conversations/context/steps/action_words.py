"""Describe what a call did, in the words of its tool, and how a person answered a question.

A tool's template names inputs, such as `sent mail to {to}: {subject}`; `{url:host}` is the host of
a URL alone. Inputs are data: each is put on one line, and markers in it are neutralised.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from conversations.context.steps.recall_list import neutralise_markers
from conversations.context.text import graphemes
from conversations.context.view import wire
from conversations.context.view.message_shape import read_input, write_label
from conversations.context.view.view import Message

#: Most characters of a description, of one input in it, and of a question or its answer.
_WORDS, _VALUE, _SAID = 160, 100, 80
#: Characters of a text that are read for a description.
_READ = 2_000
#: A longer prompt is no plain answer; it has a line in the recall list.
_LONG_ANSWER = 300
_SLOT = re.compile(r"\{(\w+)(:host)?\}")


def describe_call(call: dict[str, Any], template: str | None) -> str:
    """Return what a call did, "" if it is no action; without a template, its main input."""
    if template is None:
        return _fit_line(write_label(call), _WORDS)
    given = read_input(call)
    words = _SLOT.sub(lambda slot: _describe_input(given.get(slot[1]), bool(slot[2])), template)
    return _fit_line(words, _WORDS)


def describe_reply(question: Message, reply: Message) -> str:
    """Return how a short prompt answers the question before it; "" if it does not."""
    asked, said = _read_texts(question), _read_texts(reply)
    if not said or len(said) > _LONG_ANSWER or not asked.endswith(("?", "\uff1f")):
        return ""
    last = asked.rstrip().rpartition("\n")[2]
    asked = last[graphemes.find_cut_after(last, len(last) - _SAID) :]
    return f'the user answered "{_fit_line(said, _SAID)}" to "{_fit_line(asked, _SAID)}"'


def _read_texts(message: Message) -> str:
    blocks = (block for block in message.blocks if block.type == "text" and not block.by)
    return "\n".join(str(block.value["text"]) for block in blocks).strip()


def _describe_input(value: Any, is_host: bool) -> str:
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    text = value if isinstance(value, str) else "" if value is None else wire.encode(value)
    return _fit_line(_find_host(text) if is_host else text, _VALUE)


def _find_host(url: str) -> str:
    try:
        return urlsplit(url).hostname or url
    except ValueError:
        return url


def _fit_line(text: str, most: int) -> str:
    line = neutralise_markers(" ".join(text[:_READ].split()))
    if len(line) <= most:
        return line
    return f"{line[: graphemes.find_cut_before(line, most - 1)]}…"
