"""The price list and the cost of a request, independent of the application's own.

Rates are micro-dollars per million tokens; a bill is rounded up once, over all iterations of a
request. The sheet gives no one-hour rate for Fable 5.2; twice the input rate is charged, as on
every other model. What a fast answer costs is a fact of its model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from agentweb.emulator.usage import Usage


@dataclass(frozen=True, slots=True)
class Rates:
    fresh: int
    output: int
    write_5m: int
    write_1h: int
    read: int

    def charge(self, usage: Usage) -> int:
        """Return the price in micro-dollars times a million."""
        return (
            usage.fresh * self.fresh
            + usage.read * self.read
            + usage.write_5m * self.write_5m
            + usage.write_1h * self.write_1h
            + usage.output * self.output
        )


@dataclass(frozen=True, slots=True)
class Price:
    base: Rates
    #: Prompt tokens, reads and writes counted, above which these rates apply.
    above: int | None = None
    dear: Rates | None = None

    def rates(self, prompt_tokens: int) -> Rates:
        if self.above is not None and self.dear is not None and prompt_tokens > self.above:
            return self.dear
        return self.base


def _rates(fresh: str, output: str, write_5m: str, write_1h: str, read: str) -> Rates:
    return Rates(
        *(int(Decimal(usd) * 1_000_000) for usd in (fresh, output, write_5m, write_1h, read))
    )


_FABLE_5_1 = Price(_rates("10", "50", "12.50", "20", "0.25"))
_FABLE_5 = Price(_rates("10", "50", "12.50", "20", "1"))
_OPUS = Price(_rates("5", "25", "6.25", "10", "0.50"))
_SONNET_4 = Price(_rates("3", "15", "3.75", "6", "0.30"))

PRICES: Mapping[str, Price] = {
    "claude-fable-5-2": Price(_rates("8", "40", "10", "16", "0.20")),
    "claude-mythos-5-2": Price(_rates("8", "40", "10", "16", "0.20")),
    "claude-fable-5-1": _FABLE_5_1,
    "claude-mythos-5-1": _FABLE_5_1,
    "claude-opus-5-5": Price(_rates("4", "20", "5", "8", "0.20")),
    "claude-sonnet-5-5": Price(_rates("2", "10", "2.50", "4", "0.10")),
    "claude-haiku-5-5": Price(
        _rates("0.10", "0.50", "0.125", "0.20", "0.01"),
        above=100_000,
        dear=_rates("0.50", "2.50", "0.625", "1.00", "0.05"),
    ),
    "claude-fable-5": _FABLE_5,
    "claude-mythos-5": _FABLE_5,
    "claude-opus-5": _OPUS,
    "claude-sonnet-5": Price(_rates("2", "10", "2.50", "4", "0.20")),
    "claude-opus-4-8": _OPUS,
    "claude-opus-4-7": _OPUS,
    "claude-opus-4-6": _OPUS,
    "claude-sonnet-4-6": _SONNET_4,
    "claude-haiku-4-5-20251001": Price(_rates("1", "5", "1.25", "2", "0.10")),
    "claude-sonnet-4-5-20250929": _SONNET_4,
    "claude-opus-4-5-20251101": _OPUS,
}


#: A web search on every model: ten dollars a thousand.
SEARCH = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """Multipliers of the token price; searches cost the same on every tariff."""

    us_only: bool = False
    #: Price of a token in standard tokens.
    fast_rate: int = 1
    is_batch: bool = False

    def apply(self, total: int, scale: int) -> tuple[int, int]:
        """Add 10 % for one country, multiply for fast mode, halve for a batch."""
        if self.us_only:
            total, scale = total * 11, scale * 10
        total *= self.fast_rate
        return total, scale * 2 if self.is_batch else scale


_PLAIN = Tariff()


def cost_micros(
    model_id: str, iterations: Iterable[Usage], *, tariff: Tariff = _PLAIN, searches: int = 0
) -> int:
    """Return the exact bill of a request: all iterations, compactions too, rounded up once."""
    price = PRICES[model_id]
    charged = sum(price.rates(usage.prompt).charge(usage) for usage in iterations)
    total, scale = tariff.apply(charged, 1_000_000)
    return -(-total // scale) + searches * SEARCH
