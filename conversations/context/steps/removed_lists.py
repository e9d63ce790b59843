"""What stays in view of messages that were removed: the record of actions and the recall list.

Both are at the end of a block that this engine wrote, the record first, and are carried over when
that block is written again. Each has a share of the limit, so that neither takes room from the
other: the record a sixth of it, the recall list the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

from conversations.context.policy.policy import RECORD_SHARE, Policy
from conversations.context.steps import action_list, recall_list
from conversations.context.view.view import Block, Message, View

_BETWEEN = "\n\n"
HEADERS = (action_list.HEADER, recall_list.HEADER)


def write_lists(
    view: View, messages: Sequence[Message], blocks: Sequence[Block], policy: Policy, limit: int
) -> str:
    """Write both lists for these messages and for what `blocks` list; "" if both are empty.

    Together they have at most `limit` characters.
    """
    found, older = recall_list.read_lines(blocks)
    found += recall_list.list_lines(view, messages)
    done = write_record(view, messages, blocks, policy, limit)
    listed = recall_list.write_list(found, older, limit - _record_share(limit) - len(_BETWEEN))
    return _BETWEEN.join(filter(None, [done, listed]))


def write_record(
    view: View, messages: Sequence[Message], blocks: Sequence[Block], policy: Policy, limit: int
) -> str:
    """Write the record of actions alone."""
    actions = action_list.collect_actions(view, messages, blocks, policy)
    return action_list.write_actions(actions, _record_share(limit))


def _record_share(limit: int) -> int:
    """Return the characters of the record; `Policy.lists_chars` adds as many for it."""
    return limit // RECORD_SHARE


def strip_lists(text: str) -> str:
    """Return a block's text without its lists."""
    lines = text.splitlines(keepends=True)
    end = next((at for at, line in enumerate(lines) if line.rstrip("\n") in HEADERS), len(lines))
    return "".join(lines[:end]).rstrip()


def neutralise_headers(text: str) -> str:
    """Remove the headings of the lists from a text that is data."""
    for header in HEADERS:
        text = text.replace(header, "")
    return text


def has_only_lists(text: str) -> bool:
    return text.startswith(HEADERS)


def list_shown_lines(blocks: Sequence[Block]) -> tuple[str, ...]:
    """Return the lines of both lists, for people."""
    done = action_list.read_actions(blocks)
    return (*(action.line for action in done.actions), *recall_list.read_lines(blocks)[0])
