"""What stays in view of messages that were removed: the record of actions, names, the recall list.

They are at the end of a block that this engine wrote, in this order, and are carried over when that
block is written again. Each has room of its own, so that none takes it from another. The recall
list and the name list are as long as it pays to read them with every call: a search finds what they
do not name. Nothing stands in for the record, since nobody searches for what they do not know was
done, so its room does not follow that of the recall list. In a lower limit of both each gets less.
"""

from __future__ import annotations

from collections.abc import Sequence

from conversations.context.policy.policy import Policy
from conversations.context.steps import action_list, name_list, recall_list
from conversations.context.steps.kinds import OURS
from conversations.context.view import wire
from conversations.context.view.view import Block, Message, View

_BETWEEN = "\n\n"
#: What the model reads before the record of messages that are not sent to it again.
LEFT_OUT = "[a message of the user and what followed it were left out]"
HEADERS = (action_list.HEADER, name_list.HEADER, recall_list.HEADER)


def write_lists(
    view: View,
    messages: Sequence[Message],
    blocks: Sequence[Block],
    policy: Policy,
    limit: int,
) -> str:
    """Write the lists for these messages and for what `blocks` list; "" if all are empty.

    The record and the recall list together have at most `limit` characters.
    """
    found, older = recall_list.read_lines(blocks)
    found += recall_list.list_lines(view, messages)
    done = write_record(view, messages, blocks, policy, limit)
    room = limit - _record_share(policy, limit) - len(_BETWEEN)
    listed = recall_list.write_list(found, older, room)
    named = name_list.write_names(view, messages, blocks, policy.name_list_chars)
    return _BETWEEN.join(filter(None, [done, named, listed]))


def write_record(
    view: View, messages: Sequence[Message], blocks: Sequence[Block], policy: Policy, limit: int
) -> str:
    """Write the record of actions alone."""
    actions = action_list.collect_actions(view, messages, blocks, policy)
    return action_list.write_actions(actions, _record_share(policy, limit))


def write_left_out(view: View, messages: Sequence[Message], policy: Policy) -> str:
    """Write the block that replaces a turn's messages: the record of what was done in them.

    "" if they have no calls: an exchange of words alone leaves nothing.
    """
    if not any(message.shape.calls or message.shape.server_calls for message in messages):
        return ""
    # Working memories are read with their messages.
    ours = [b for m in messages[:1] for b in m.blocks if b.by in OURS and b.by != "rounds"]
    done = write_record(view, messages, ours, policy, policy.lists_chars)
    return wire.encode({"type": "text", "text": f"{LEFT_OUT}\n{done}"}) if done else ""


def _record_share(policy: Policy, limit: int) -> int:
    """Return the characters of the record within a limit of it and the recall list together.

    However long the recall list may be, a sixth, as far as the record's own number goes.
    """
    share = limit * policy.action_list_chars // policy.lists_chars
    return max(share, min(policy.action_list_chars, limit // 6))


def strip_lists(text: str) -> str:
    """Return a block's text without its lists."""
    lines = text.splitlines(keepends=True)
    end = next((at for at, line in enumerate(lines) if line.rstrip("\n") in HEADERS), len(lines))
    return "".join(lines[:end]).rstrip()


def neutralise_headers(text: str) -> str:
    """Remove the headings of the lists from a text that is data."""
    for header in HEADERS:
        # Nothing in its place would let what stands around it become a heading.
        text = text.replace(header, "…")
    return text


def has_only_lists(text: str) -> bool:
    return text.startswith(HEADERS)


def list_shown_lines(blocks: Sequence[Block]) -> tuple[str, ...]:
    """Return the lines of the lists, for people."""
    done = (action.line for action in action_list.read_actions(blocks).actions)
    named = name_list.read_name_lines(blocks)
    return (*done, *named, *recall_list.read_lines(blocks)[0])
