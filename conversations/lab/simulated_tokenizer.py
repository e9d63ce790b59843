"""The simulated API's token counter: the engine's estimate scaled, or any other counter.

The scale makes the simulation realistic: at 100 % the engine would know every count before it is
billed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from conversations.context.tokens.estimate import FRAME, estimate_block, estimate_text
from conversations.context.view import wire

Count = Callable[[dict[str, Any]], int]


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """Counters for a block and a tool, and constants per message, per request and per tool list."""

    block: Count
    tool: Count
    message: int = FRAME
    request: int = 0
    tools: int = 0


def scale_estimate(percent: int = 100) -> Tokenizer:
    """Return a tokenizer that counts so many percent of the engine's estimate."""

    def block(value: dict[str, Any]) -> int:
        return -(-estimate_block(value) * percent // 100)

    def tool(value: dict[str, Any]) -> int:
        return -(-estimate_text(wire.encode(value)) * percent // 100)

    return Tokenizer(block, tool)
