"""How much of a request is unchanged in the next one, and can be read from the prompt cache.

The cache is read from the front up to the first block that differs, and not at all if the model,
the system prompt or the tools differ (the `binding` of an envelope).
"""

from __future__ import annotations

from dataclasses import dataclass

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
