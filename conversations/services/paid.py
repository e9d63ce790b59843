"""Paid: what of a call that ended is billed, and how that is known."""

from __future__ import annotations

from conversations.context import wire
from conversations.context.envelope import searches_in
from conversations.models import ApiCall
from conversations.ports import Ending
from conversations.usage import Usage


def known_usage(call: ApiCall, ending: Ending) -> tuple[Usage | None, str]:
    """Give what is paid for and how it is known: exact, estimated from a cut stream, or none.

    A call of which no event came is free, also one that ran into the deadline for it: the API bills
    what it generates, and had announced nothing. (Where a worker died nobody knows what came, so
    what such a call holds is settled.) Of a cut stream the input is exact from its first event; the
    output is what had come, by the model's tokenizer, and never more than was allowed.
    """
    said = ending.usage
    if said is None:
        return None, "none"
    if ending.stop_reason and said.is_final:
        # The reason comes with the final figures, whatever happens behind it.
        return said, "exact"
    # A compaction says at its end only what it has read.
    read = said.input if said.context else call.estimated_tokens
    came = min(ending.received_tokens, call.max_tokens)
    return said.cut(read, came, ending.received_searches), "estimated"


def searches_offered(call: ApiCall, paid: Usage) -> int:
    """Give how many searches of the web a call offered; it is looked up where any were made."""
    if not paid.searches:
        return 0
    return searches_in(wire.decode(call.envelope.text))
