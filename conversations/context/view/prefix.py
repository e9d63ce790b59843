"""How much of a request is unchanged in the next one, and can be read from the prompt cache.

The cache is read from the front up to the first block that differs, and not at all if the model,
the system prompt or the tools differ (the `binding` of an envelope).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from conversations.context.view.cache_breakpoints import find_settled
from conversations.context.view.view import Message, View


@dataclass(frozen=True, slots=True)
class CommonPrefix:
    """The number of blocks at the front that both requests have, and their estimated tokens."""

    blocks: int
    tokens: int


def compare_prefix(before: View, after: View) -> CommonPrefix:
    """Compare the messages of two requests from the first block on."""
    blocks = tokens = 0
    pairs = zip(_list_sent(before), _list_sent(after), strict=False)
    for old, new in pairs:
        if old is not new and old.text != new.text:
            same = _count_common(old, new)
            return CommonPrefix(blocks + same, tokens + sum(b.tokens for b in new.blocks[:same]))
        blocks += len(new.blocks)
        tokens += new.tokens
    return CommonPrefix(blocks, tokens)


def count_added(before: View, after: View, edited_from: int | None = None) -> int:
    """Count the estimated tokens that a request with `after` adds to the request before it.

    `before` is the view with what was appended to that request; all but that is added that differs.
    From the message numbered `edited_from` on it was changed since; None: nowhere.
    """
    messages = after.messages
    kept = min(find_settled(messages) + 1, count_unedited(messages, edited_from))
    if after is not before:
        pairs = zip(before.messages, messages, strict=False)
        same = takewhile(lambda pair: pair[0].content == pair[1].content, pairs)
        kept = min(kept, sum(1 for _ in same))
    return sum(message.tokens for message in messages[kept:])


def count_unedited(messages: Sequence[Message], edited_from: int | None) -> int:
    """Count the messages before the first changed one; all of them if that is None."""
    if edited_from is None:
        return len(messages)
    return bisect_left(messages, edited_from, key=lambda message: message.seq)


def _list_sent(view: View) -> list[Message]:
    return [message for message in view.messages if not message.is_empty]


def _count_common(old: Message, new: Message) -> int:
    """Count the blocks at the front that two messages share."""
    if old.role != new.role:
        return 0
    pairs = zip(old.blocks, new.blocks, strict=False)
    count = 0
    for left, right in pairs:
        if left.text != right.text:
            break
        count += 1
    return count
