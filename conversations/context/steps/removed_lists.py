"""What stays in view of messages that were removed: the record of actions and the recall list.

Both stand at the end of a block that this engine wrote, the record first, and are carried over when
that block is written again. They share one limit; the record takes a third of it at most, and of a
small one what it needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from conversations.context.policy.policy import Policy
from conversations.context.steps import action_list, recall_list
from conversations.context.view.view import Block, Message, View

HEADERS = (action_list.HEADER, recall_list.HEADER)
#: Characters of the record that a small limit allows, too.
_LEAST = 600


def write_lists(
    view: View, messages: Sequence[Message], blocks: Sequence[Block], policy: Policy, limit: int
) -> str:
    """Write the lists for these messages and what `blocks` list; "" when there is nothing."""
    found, older = recall_list.read_lines(blocks)
    found += recall_list.list_lines(view, messages)
    done = write_record(view, messages, blocks, policy, limit)
    listed = recall_list.write_list(found, older, limit - len(done))
    return "\n\n".join(filter(None, [done, listed]))


def write_record(
    view: View, messages: Sequence[Message], blocks: Sequence[Block], policy: Policy, limit: int
) -> str:
    """Write the record of actions alone."""
    actions = action_list.collect_actions(view, messages, blocks, policy)
    return action_list.write_actions(actions, max(limit // 3, min(limit, _LEAST)))


def strip_lists(text: str) -> str:
    """Return a block's text without its lists."""
    lines = text.splitlines(keepends=True)
    end = next((at for at, line in enumerate(lines) if line.rstrip("\n") in HEADERS), len(lines))
    return "".join(lines[:end]).rstrip()


def neutralise_headers(text: str) -> str:
    """Take the headings of the lists out of a text that is only data."""
    for header in HEADERS:
        text = text.replace(header, "")
    return text


def has_only_lists(text: str) -> bool:
    return text.startswith(HEADERS)


def list_shown_lines(blocks: Sequence[Block]) -> tuple[str, ...]:
    """Return the lines of both lists, for people."""
    done = action_list.read_actions(blocks)
    return (*(action.line for action in done.actions), *recall_list.read_lines(blocks)[0])
