"""Tokens to micro-dollars, exactly: integer rates per million, rounded up once per call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from conversations.agent.usage import UNASKED, WHOLE, Usage
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view.cache_breakpoints import Lifetime
from conversations.context.view.cost_decision import Rates

MILLION = 1_000_000
#: Smallest output limit of a call, in tokens.
LEAST_OUTPUT = 1_024
KINDS = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read", "web_search")
#: Kinds of token that input can be billed as, by the lifetime of the cache.
_INPUT_KINDS = ("input", "cache_write_5m", "cache_read")
_KINDS: dict[Lifetime, tuple[str, ...]] = {
    "5m": _INPUT_KINDS,
    "1h": (*_INPUT_KINDS, "cache_write_1h"),
}
_DECIDING = ("input", "output", "cache_write_5m", "cache_read")
_NO_PRICE = mark_recorded(
    gettext_noop("%(model)s has no price for %(kind)s; an administrator can add one.")
)


class PriceMissing(Exception):
    """A model has no price for a kind of token; the call is refused, never free."""

    code = "price_missing"

    def __init__(self, model: str, kind: str) -> None:
        super().__init__(_NO_PRICE % {"model": model, "kind": kind.replace("_", " ")})
        self.model, self.kind = model, kind


@dataclass(frozen=True, slots=True)
class PriceList:
    """Rates of one model: tiers of (prompts above so many tokens, micro-dollars per million)."""

    model: str
    tiers: tuple[tuple[int, Mapping[str, int]], ...]
    #: The price rows it was read from.
    ids: tuple[int, ...] = ()

    def rate(self, kind: str, prompt_tokens: int) -> int:
        """Return the rate for a prompt of that size, in micro-dollars per million tokens."""
        return self._reached(kind, prompt_tokens)[-1]

    def _reached(self, kind: str, prompt_tokens: int) -> list[int]:
        """Return the rates of all tiers up to that size; the last one applies."""
        rates = [
            rates[kind]
            for above, rates in sorted(self.tiers, key=lambda tier: tier[0])
            if kind in rates and (prompt_tokens > above or above == 0)
        ]
        if not rates:
            raise PriceMissing(self.model, kind)
        return rates

    def cost(self, usage: Usage) -> int:
        """Return the cost of a call in micro-dollars; every prompt token counts for the tier.

        A kind without a price that `worst` did not include is billed at the highest input rate: the
        call was made, so it cannot be refused any more. Searches without a price were never offered
        and are not billed. `Usage.factors` change the price of the tokens, not of the searches.
        """
        searched = usage.searches * self.search if usage.searches and self.has_search else 0
        return _sum_up(sum(map(self._charge, usage.billed)), searched, usage.factors)

    @property
    def has_search(self) -> bool:
        """Whether web searches have a price: only then are they offered to the model."""
        return any("web_search" in rates for above, rates in self.tiers if above == 0)

    @property
    def search(self) -> int:
        """The rate of searches, in micro-dollars per million; raises PriceMissing."""
        return self.rate("web_search", 0)

    def _charge(self, usage: Usage) -> int:
        """Return the price of one iteration, in millionths of a micro-dollar."""
        counts = {
            "input": usage.input,
            "output": usage.output,
            "cache_write_5m": usage.cache_write_5m,
            "cache_write_1h": usage.cache_write_1h,
            "cache_read": usage.cache_read,
        }
        return sum(n * self._billed(kind, usage.tier) for kind, n in counts.items() if n)

    def _billed(self, kind: str, prompt_tokens: int) -> int:
        try:
            return self.rate(kind, prompt_tokens)
        except PriceMissing:
            if kind in ("output", *_INPUT_KINDS):
                raise
            return self._dearest(_INPUT_KINDS, prompt_tokens)

    def _dearest(self, kinds: tuple[str, ...], prompt_tokens: int) -> int:
        return max(rate for kind in kinds for rate in self._reached(kind, prompt_tokens))

    @property
    def rates(self) -> Rates | None:
        """The prices by which the context engine decides; None when one is missing."""
        try:
            fresh, output, write, read = (self.rate(kind, 0) for kind in _DECIDING)
        except PriceMissing:
            return None
        cliff = min((above for above, _ in self.tiers if above), default=0)
        hour = next(rates.get("cache_write_1h", 0) for above, rates in self.tiers if not above)
        return Rates(fresh, output, write, read, cliff, hour)

    def worst(
        self,
        input_tokens: int,
        output_tokens: int,
        searches: int = 0,
        lifetime: Lifetime = "5m",
        *,
        reread: int = 0,
    ) -> int:
        """Return the most a call of at most that size can cost; raises PriceMissing.

        A workspace can set what makes tokens dearer (`UNASKED`), which only the answer tells.
        `reread` are the tokens that rounds after searches read from the prompt cache.
        """
        written = self._dearest(_KINDS[lifetime], input_tokens)
        output_rate = self._dearest(("output",), input_tokens)
        again = reread * self._dearest(("cache_read",), input_tokens)
        searched = searches * self.search if searches else 0
        tokens = input_tokens * written + output_tokens * output_rate + again
        return _sum_up(tokens, searched, UNASKED)

    def affordable_output(
        self,
        input_tokens: int,
        micros: int,
        searches: int = 0,
        lifetime: Lifetime = "5m",
        *,
        reread: int = 0,
    ) -> int:
        """Return the most output tokens whose worst cost stays within `micros`; -1: not even 0."""
        rest = micros - self.worst(input_tokens, 0, searches, lifetime, reread=reread)
        scale = prod(WHOLE for _ in UNASKED)
        output_rate = self._dearest(("output",), input_tokens) * prod(UNASKED)
        return rest * MILLION * scale // max(1, output_rate) if rest >= 0 else -1


def _sum_up(tokens: int, searches: int, factors: tuple[int, ...]) -> int:
    """Return micro-dollars of millionths, rounded up; the factors are of the tokens alone."""
    scale = prod(WHOLE for _ in factors)
    return -(-(tokens * prod(factors) + searches * scale) // (MILLION * scale))
