"""A model of how thinking is signed, written from the API's documentation.

A signature covers the envelope (model, account, system prompt, tools) and for every block
before it. Thinking may be removed from the front; where any of it is missing in the middle, or any
other block before it differs, all thinking behind is refused. It shares no code with the engine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

KINDS = ("thinking", "redacted_thinking")


@dataclass(frozen=True)
class Seal:
    """What one signature vouches for; `thoughts` are the signatures before it."""

    binding: str
    prefix: str
    thoughts: tuple[str, ...]


@dataclass
class _Walk:
    """The blocks passed so far."""

    state: Any = field(default_factory=hashlib.blake2b)
    thoughts: list[str] = field(default_factory=list)

    def seal(self, binding: str) -> Seal:
        return Seal(binding, self.state.hexdigest(), tuple(self.thoughts))

    def pass_by(self, role: str, block: dict[str, Any]) -> None:
        if block["type"] in KINDS:
            self.thoughts.append(_name(block))
        else:
            # Marks of the prompt cache may move freely.
            content = {name: value for name, value in block.items() if name != "cache_control"}
            self.state.update(f"{role} {json.dumps(content)}\n".encode())


class Seals:
    """All signatures the API has given."""

    def __init__(self) -> None:
        self.given: dict[str, Seal] = {}

    def sign(self, messages: Iterable[dict[str, Any]], binding: str) -> None:
        """Sign the thinking not yet signed, as if each answer was made from what stands before."""
        walk = _Walk()
        for role, block in _blocks(messages):
            if block["type"] in KINDS:
                self.given.setdefault(_name(block), walk.seal(binding))
            walk.pass_by(role, block)

    def broken(self, messages: Iterable[dict[str, Any]], binding: str) -> list[str]:
        """Name the signatures that the API would refuse in a request."""
        walk, found = _Walk(), []
        for role, block in _blocks(messages):
            if block["type"] in KINDS and not self._holds(_name(block), walk, binding):
                found.append(f"{_name(block)} under {binding}")
            walk.pass_by(role, block)
        return found

    def _holds(self, name: str, walk: _Walk, binding: str) -> bool:
        seal = self.given[name]
        before = tuple(walk.thoughts)
        is_suffix = not before or seal.thoughts[-len(before) :] == before
        return seal.binding == binding and is_suffix and seal.prefix == walk.state.hexdigest()


def _blocks(messages: Iterable[dict[str, Any]]) -> Iterable[tuple[str, dict[str, Any]]]:
    for message in messages:
        for block in message["content"]:
            yield message["role"], block


def _name(block: dict[str, Any]) -> str:
    return str(block.get("signature") or block["data"])
