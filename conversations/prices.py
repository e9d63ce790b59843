"""Tokens to micro-dollars, exactly: integer rates per million, rounded up once per call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conversations.usage import Usage

MILLION = 1_000_000
KINDS = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read")


class PriceMissing(Exception):
    """A model has no price for a kind of token; it is refused, never free."""

    code = "price_missing"

    def __init__(self, model: str, kind: str) -> None:
        super().__init__(
            f"{model} has no price for {kind.replace('_', ' ')}; an administrator can add one."
        )
        self.model, self.kind = model, kind


@dataclass(frozen=True, slots=True)
class PriceList:
    """Rates of one model: tiers of (prompts above so many tokens, micro-dollars per million)."""

    model: str
    tiers: tuple[tuple[int, Mapping[str, int]], ...]

    def rate(self, kind: str, prompt_tokens: int) -> int:
        """Give the rate for a prompt of that size, in micro-dollars per million tokens."""
        found: int | None = None
        for above, rates in sorted(self.tiers, key=lambda tier: tier[0]):
            if prompt_tokens > above or above == 0:
                found = rates.get(kind, found)
        if found is None:
            raise PriceMissing(self.model, kind)
        return found

    def cost(self, usage: Usage) -> int:
        """Give the cost of a call in micro-dollars; every prompt token counts for the tier."""
        counts = {
            "input": usage.input,
            "output": usage.output,
            "cache_write_5m": usage.cache_write_5m,
            "cache_write_1h": usage.cache_write_1h,
            "cache_read": usage.cache_read,
        }
        parts = (n * self.rate(kind, usage.context) for kind, n in counts.items() if n)
        return round_up(sum(parts))

    def worst(self, input_tokens: int, output_tokens: int) -> int:
        """Give the most a call can cost: all input written to the cache, all output used."""
        written = max(self.rate("input", input_tokens), self.rate("cache_write_5m", input_tokens))
        return round_up(input_tokens * written + output_tokens * self.rate("output", input_tokens))

    def affordable_output(self, input_tokens: int, micros: int) -> int:
        """Give the most output tokens whose worst cost stays within `micros`; may be negative."""
        rest = micros - self.worst(input_tokens, 0)
        return rest * MILLION // max(1, self.rate("output", input_tokens)) if rest > 0 else -1


def round_up(micros_times_million: int) -> int:
    return -(-micros_times_million // MILLION)
