"""Token counts as the API reports them: cumulative, and clamped to what is possible.

`input` excludes what was read from or written to the cache; the size of the request is `context`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from conversations.context import wire

_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
#: More tokens than any model takes: a figure above it is an error of the sender.
_MAX_TOKENS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as last reported; `is_clamped` when a figure was impossible."""

    input: int
    output: int
    cache_read: int
    cache_write_5m: int
    cache_write_1h: int
    raw: str = "{}"
    is_clamped: bool = False

    @property
    def cache_write(self) -> int:
        return self.cache_write_5m + self.cache_write_1h

    @property
    def context(self) -> int:
        """Tokens of the request, however they were billed."""
        return self.input + self.cache_read + self.cache_write


def usage_from(raw: dict[str, Any]) -> Usage:
    """Read a `usage` object; a missing, negative, huge or odd figure never makes money."""
    flags: list[bool] = []
    counts = {name: _count(raw.get(name, 0), flags) for name in _COUNTS}
    split = raw.get("cache_creation")
    hour = (
        _count(split.get("ephemeral_1h_input_tokens", 0), flags) if isinstance(split, dict) else 0
    )
    written = counts["cache_creation_input_tokens"]
    hour = min(hour, written)
    return Usage(
        counts["input_tokens"],
        counts["output_tokens"],
        counts["cache_read_input_tokens"],
        written - hour,
        hour,
        wire.encode(raw),
        is_clamped=any(flags),
    )


def _count(value: object, flags: list[bool]) -> int:
    """Clamp a reported count to what is possible and note when that changed it."""
    number = value if isinstance(value, int) and not isinstance(value, bool) else 0
    clamped = max(0, min(_MAX_TOKENS, number))
    flags.append(clamped != value and value is not None)
    return clamped
