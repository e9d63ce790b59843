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
from conversations.prices import PriceList

MOST_OUTPUT = 16_000


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
    #: Whether the API clears tool results and compacts on demand for this model.
    clears: bool = False
    compacts: bool = False

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
        return self.prices.rates

    def summary_envelope(self, system: str, max_tokens: int) -> Envelope:
        return envelope(model=self.model, max_tokens=max_tokens, system=system, cached=False)
