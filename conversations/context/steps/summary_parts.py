"""Split a zone that is too long for the summary model: parts of equal tokens, cut between messages.

A part takes at most a share of the window, less when messages are large, with a margin for the
estimate's error. An answer and the results of its calls stay in one part. A message that would fill
half the window alone is replaced by a note.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from conversations.context.tokens.estimate import estimate_text

#: Percent: the estimate's margin, a part's usual share of the window, and its smallest share.
MARGIN, SHARE, LEAST_SHARE = 120, 40, 15
#: A message with more than this percent of the window is left out.
OVERSIZED = 50
#: If messages take more than this percent of the window on average, parts are smaller.
_LARGE_ON_AVERAGE = 10


@dataclass(frozen=True, slots=True)
class RenderedMessage:
    """One message as the summary call reads it; with `follows` it must not begin a part."""

    role: str
    text: str
    follows: bool


@dataclass(frozen=True, slots=True)
class Part:
    """The text of one part, and how many rendered messages it has."""

    text: str
    messages: int


def split_messages(messages: Sequence[RenderedMessage], window: int) -> list[Part]:
    """Return the parts in order."""
    kept = [_bound_message(one, window) for one in messages]
    sizes = [estimate_text(one.text) * MARGIN // 100 for one in kept]
    most = max(1, window * _choose_share(sizes, window) // 100)
    wanted = -(-sum(sizes) // most)
    each = -(-sum(sizes) // max(1, wanted))
    found: list[list[str]] = []
    used = each
    for one, size in zip(kept, sizes, strict=True):
        if used >= each and not (one.follows and found):
            found.append([])
            used = 0
        found[-1].append(one.text)
        used += size
    return [Part("\n\n".join(texts), len(texts)) for texts in found]


def _bound_message(one: RenderedMessage, window: int) -> RenderedMessage:
    tokens = estimate_text(one.text)
    if tokens * MARGIN <= window * OVERSIZED:
        return one
    note = f"[{one.role}]\n[a message of about {tokens:,} tokens is left out]"
    return RenderedMessage(one.role, note, one.follows)


def _choose_share(sizes: Sequence[int], window: int) -> int:
    average = sum(sizes) * 100 // max(1, len(sizes)) // max(1, window)
    if average <= _LARGE_ON_AVERAGE:
        return SHARE
    return max(LEAST_SHARE, SHARE - 2 * average)
