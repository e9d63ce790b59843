"""Deterministic synthetic conversations for measuring: any length, tool results of 2 to 20 KB."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from conversations.context.view import wire
from conversations.context.view.view import Kind, Message

#: Messages of one turn: a prompt, rounds of a call and its result, a last answer.
TURN = 20
_WORDS = (
    "config value server total item page result name price model review score city offer remote "
    "berlin python senior team salary open closed 2026 12,400 https://example.org/jobs/"
)
_POOL = 64


def make_messages(count: int) -> Iterator[Message]:
    """Yield the first `count` messages of an endless conversation."""
    pool = _make_pool()
    for at in range(count):
        yield make_message(at, pool)


def make_message(at: int, pool: list[str]) -> Message:
    """Return the message at an index: always the same for the same index."""
    place = at % TURN
    if place == 0:
        words = f"Question {at}: compare the offers of page {at // TURN} with my criteria."
        return _build_message(at, "prompt", {"type": "text", "text": words})
    if place == TURN - 1:
        return _build_message(
            at, "answer", {"type": "text", "text": f"Answer {at}. {pool[at % 8]}"}
        )
    if place % 2:
        tool_input = {"url": f"https://example.org/jobs/{at}"}
        call = {"type": "tool_use", "id": f"toolu_{at}", "name": "fetch_url", "input": tool_input}
        return _build_message(at, "answer", {"type": "text", "text": f"I look at page {at}."}, call)
    text = f"Page {at - 1}\n{pool[at % _POOL]}"
    result = {"type": "tool_result", "tool_use_id": f"toolu_{at - 1}", "content": text}
    return _build_message(at, "results", result)


def _build_message(at: int, kind: Kind, *blocks: dict[str, Any]) -> Message:
    return Message.parse(at + 1, kind, wire.encode(blocks))


def _make_pool() -> list[str]:
    """Make texts whose sizes spread evenly over 2 to 20 KB; the first eight are short answers."""
    chance = random.Random(7)  # noqa: S311  (nobody guesses anything)
    words, texts = _WORDS.split(), []
    for number in range(_POOL):
        size = 400 if number < 8 else 2_000 + 18_000 * (number - 8) // (_POOL - 9)
        line = " ".join(chance.choice(words) for _ in range(size // 6))
        texts.append(line[:size])
    return texts
