"""How a summary is requested: on a prompt of its own, or by going on from the last request.

The prompt cache has the last request, so a model that goes on from it reads the whole conversation
at the price of the cache; a prompt of its own is shorter, but is read at the full price. To be read
from the cache the request must have the envelope of a reply: with other tools, another system
prompt or less effort the API would read everything anew. So the model may think longer, which is
part of the price, or call a tool: then its text is rejected and requested on a prompt of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conversations.context.steps import summary_prompt
from conversations.context.steps.protocol import SummaryWanted
from conversations.context.view import wire
from conversations.context.view.cost_decision import Rates
from conversations.context.view.server_calls import read_server_calls
from conversations.context.view.view import Message, View

#: Approximate tokens of a summary, of the thinking before it if the model goes on from a
#: conversation, and of the instruction.
WRITTEN, THOUGHT, INSTRUCTION = 1_000, 1_000, 600
#: Tokens added to the output limit for thinking in a request that goes on from a conversation.
THINKING_ROOM = 4_096


@dataclass(frozen=True, slots=True)
class LastRequest:
    """The last request: `length` messages; tokens that the cache returns of it, and the others."""

    length: int
    read: int
    missed: int = 0

    def price_summary(self, rates: Rates) -> int:
        """Return what a summary costs that goes on from it, in micro-dollars."""
        written = self.missed + INSTRUCTION
        return rates.price_tokens(read=self.read, written=written, output=WRITTEN + THOUGHT)


@dataclass(frozen=True, slots=True)
class SummaryOffer:
    """The prices of the model, those of the model that writes summaries, and the last request.

    `last` is None where the model cannot go on from it.
    """

    rates: Rates | None
    writer: Rates | None
    last: LastRequest | None = None

    def price(self, read: int) -> int:
        """Return the cost in micro-dollars; a prompt of its own has `read` tokens."""
        own = self._price_own(read)
        return own if self.continued is None else min(own, self.continued)

    def continue_view(self, view: View, wanted: SummaryWanted, read: int) -> SummaryWanted | None:
        """Return the request that goes on from the last one; None unless it is cheaper."""
        last, price, behind = self.last, self.continued, wanted.behind
        if last is None or price is None or behind is None or price >= self._price_own(read):
            return None
        tail = behind - (view.length - last.length)
        if tail < 0:
            # It would not read all that it replaces.
            return None
        text = summary_prompt.write_continuation(tail, wanted.keep, wanted.max_tokens // 2)
        content = wire.encode([{"type": "text", "text": text}])
        seq = view.messages[last.length - 1].seq + 1
        continued = view.head(last.length).append(Message.parse(seq, "prompt", content))
        calls = read_server_calls(continued)
        if calls.open or calls.late:
            # The API would run the open calls of its own tools.
            return None
        return replace(wanted, continued=continued, cached=last.read)

    @property
    def continued(self) -> int | None:
        last, rates = self.last, self.rates
        return None if last is None or rates is None else last.price_summary(rates)

    def _price_own(self, read: int) -> int:
        writer = self.writer or self.rates
        return 0 if writer is None else writer.price_tokens(fresh=read, output=WRITTEN)
