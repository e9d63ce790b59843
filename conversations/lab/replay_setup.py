"""The setting of a replay: a model with its window and prices, a policy, and simulated parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from conversations.agent.prices import PriceList
from conversations.context.policy.policy import Policy
from conversations.context.view.cost_decision import Rates
from conversations.context.view.envelope import Envelope, build_envelope
from conversations.lab.records import Record
from conversations.lab.simulated_tokenizer import Tokenizer, build_tokenizer
from conversations.lab.summarizer import Summarizer, extract_summary

MOST_OUTPUT = 16_000


@dataclass(frozen=True, slots=True)
class World:
    """The setting of a replay; `recall_tools` are added where a recorded agent lacks them."""

    model: str
    window: int
    policy: Policy
    prices: PriceList
    #: What the policy decides by; None if prices are unknown.
    rates: Rates | None
    minimum: int
    summarizer: Summarizer = extract_summary
    tokenizer: Tokenizer = field(default_factory=build_tokenizer)
    recall_tools: tuple[dict[str, Any], ...] = ()
    #: Number of entries after which a refused summary no longer counts.
    remembered: int = 60
    #: Whether the API clears tool results and compacts on demand for this model.
    clears: bool = False
    compacts: bool = False
    #: Whether facts the agent made are scored too, and recalling those out of view is billed.
    bills_recalls: bool = False
    #: Prices of another model that writes summaries on a prompt of their own, and what the policy
    #: weighs these by; None where the same model does.
    writer: PriceList | None = None
    writer_rates: Rates | None = None

    def envelope(self, record: Record) -> Envelope:
        """Return the envelope of the record's replies."""
        known = {tool.get("name") for tool in record.tools}
        added = (tool for tool in self.recall_tools if tool["name"] not in known)
        return build_envelope(
            model=self.model,
            max_tokens=MOST_OUTPUT,
            system=record.system,
            tools=(*record.tools, *added),
        )

    def summary_envelope(self, system: str, max_tokens: int) -> Envelope:
        return build_envelope(model=self.model, max_tokens=max_tokens, system=system, cached=False)
