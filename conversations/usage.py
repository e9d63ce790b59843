"""Token counts as the API reports them: cumulative, and clamped to what is possible.

`input` excludes what was read from or written to the cache; the size of the request is `context`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from conversations.context import wire

#: More tokens than any model takes: a figure above it is an error of the sender.
MOST_TOKENS = 1_000_000_000


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
    given = raw.get("cache_creation")
    split = given if isinstance(given, dict) else {}
    flags: list[bool] = []

    def count(figures: dict[str, Any], name: str) -> int:
        value = figures.get(name)
        number = value if isinstance(value, int) and not isinstance(value, bool) else 0
        clamped = max(0, min(MOST_TOKENS, number))
        flags.append(value is not None and (clamped != value or isinstance(value, bool)))
        return clamped

    hour = count(split, "ephemeral_1h_input_tokens")
    # The split says what the total is made of; without a total it is the total.
    written = max(
        count(raw, "cache_creation_input_tokens"),
        hour + count(split, "ephemeral_5m_input_tokens"),
    )
    return Usage(
        count(raw, "input_tokens"),
        count(raw, "output_tokens"),
        count(raw, "cache_read_input_tokens"),
        written - hour,
        hour,
        wire.encode(raw),
        is_clamped=any(flags),
    )
