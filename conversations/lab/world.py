"""What a replay is played against: a model with its window and prices, a policy, the stand-ins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from conversations.context.decision import Rates
from conversations.context.envelope import Envelope, envelope
from conversations.context.policy import Policy
from conversations.lab.records import Record
from conversations.lab.summarizer import Summarizer, extractive
from conversations.lab.tokens import Tokenizer, scaled
from conversations.prices import PriceList, PriceMissing

MOST_OUTPUT = 16_000
_KINDS = ("input", "output", "cache_write_5m", "cache_read")


@dataclass(frozen=True, slots=True)
class World:
    """`recall_tools` are the definitions added once something was reduced."""

    model: str
    window: int
    policy: Policy
    prices: PriceList
    minimum: int
    summarizer: Summarizer = extractive
    tokenizer: Tokenizer = field(default_factory=scaled)
    recall_tools: tuple[dict[str, Any], ...] = ()
    #: Entries of the log after which a refused summary is forgotten.
    remembered: int = 60

    def envelopes(self, record: Record) -> Callable[[bool], Envelope]:
        """Give the record's envelopes: with or without recall."""
        made = {
            recall: envelope(
                model=self.model,
                max_tokens=MOST_OUTPUT,
                system=record.system,
                tools=(*record.tools, *(self.recall_tools if recall else ())),
            )
            for recall in (False, True)
        }
        return made.__getitem__

    @property
    def rates(self) -> Rates | None:
        """Give the prices the engine decides by; None when one is missing."""
        above = [tier for tier, _ in self.prices.tiers if tier]
        try:
            fresh, output, write, read = (self.prices.rate(kind, 0) for kind in _KINDS)
        except PriceMissing:
            return None
        return Rates(fresh, output, write, read, cliff=min(above, default=0))

    def summary_envelope(self, system: str, max_tokens: int) -> Envelope:
        return envelope(model=self.model, max_tokens=max_tokens, system=system)
