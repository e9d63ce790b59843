"""The name list, kept in view: what the user said in removed messages, and the names in them.

What is needed long after it was read is mostly a name: a path, an address, an id, a symbol of code.
A name takes a few tokens where its message takes hundreds, needs no recall while it is listed, and
tells the model which original has what it looks for. So the list has the names of removed messages
by the message's number, newest ones first to stay; a name that a newer line or a message in view
has is left out. The beginnings of the user's prompts have a share of their own, because nothing
else keeps wishes in view where no summary is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from conversations.context.steps.kinds import OURS
from conversations.context.steps.recall_list import message_id, neutralise_markers
from conversations.context.text.facts_in_text import list_names
from conversations.context.text.shorten import cut_head
from conversations.context.view.searched_originals import read_result, write_input
from conversations.context.view.view import Block, Message, View

HEADER = "Said and named earlier, newest last:"
#: One in so many of the characters is for the user's words, each prompt with at most `_WORDS`.
_SAID_SHARE, _WORDS = 6, 160
#: No message has more than one in so many of the characters.
_MESSAGE_SHARE = 3
_USER = "the user: "
_LINE = re.compile(r'"msg_(\d+)": (.+)')
#: What a notice in a shortened result names for `recall`, as each line of this list does.
_ID = re.compile(r"msg_\d+")
#: So many characters of the newest messages in view are searched for a name.
_NEAR = 200_000


@dataclass(slots=True)
class NameList:
    """Names and the user's words, by the numbers of their messages; `chars` of the old lines."""

    names: dict[int, list[str]] = field(default_factory=dict)
    said: dict[int, str] = field(default_factory=dict)
    chars: int = 0

    def carry_over(self, blocks: Iterable[Block]) -> None:
        """Add what lists in blocks of this engine say."""
        for line in _read_lines(blocks):
            self.chars += len(line[0]) + 1
            if line[2].startswith(_USER):
                self.said[int(line[1])] = line[2]
            else:
                self.names[int(line[1])] = line[2].split(", ")

    def add(self, message: Message) -> None:
        """Add what a message says that is removed now; a list in it is carried over."""
        if message.shape.flaw is not None:
            return
        self.carry_over(block for block in message.blocks if block.by in OURS)
        text = _read_message(message)
        if names := [name for name in list_names(text) if not _ID.fullmatch(name)]:
            self.names[message.seq] = names
        if message.kind == "prompt" and (words := " ".join(text[: 4 * _WORDS].split())):
            short = cut_head(words, _WORDS)
            more = "…" if len(short) < len(words) else ""
            self.said[message.seq] = f"{_USER}{neutralise_markers(short)}{more}"


def write_names(
    view: View, messages: Sequence[Message], blocks: Iterable[Block], limit: int
) -> str:
    """Write the list for these messages and for what `blocks` list; "" if it is empty.

    It has at most `limit` characters, and grows by at most as many as the messages have tokens.
    """
    found = NameList()
    found.carry_over(blocks)
    limit = min(limit, found.chars + sum(message.tokens for message in messages))
    if limit <= len(HEADER):
        return ""
    for message in messages:
        found.add(message)
    said = list(_keep_words(found, limit // _SAID_SHARE))
    room = limit - len(HEADER) - sum(len(line) + 1 for _, line in said)
    known = "\n".join([_read_staying(view, messages), *(line for _, line in said)])
    named = _keep_names(found, known, room, limit // _MESSAGE_SHARE)
    lines = [line for _, line in sorted([*said, *named])]
    return "\n".join([HEADER, *lines]) if lines else ""


def read_name_lines(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield the lines of the lists in blocks that this engine wrote."""
    return (line[0] for line in _read_lines(blocks))


def _read_lines(blocks: Iterable[Block]) -> Iterator[re.Match[str]]:
    for block in blocks:
        is_inside = False
        for line in str(block.value.get("text", "")).splitlines():
            is_inside = line == HEADER or (is_inside and bool(line))
            # Right behind the last line may be the end of the summary that has the list.
            if is_inside and (match := _LINE.fullmatch(line)):
                yield match


def _keep_words(found: NameList, room: int) -> Iterator[tuple[int, str]]:
    """Yield the newest of the user's words that fit, with the numbers of their messages."""
    for seq in sorted(found.said, reverse=True):
        line = f'"{message_id(seq)}": {found.said[seq]}'
        room -= len(line) + 1
        if room < 0:
            return
        yield seq, line


def _keep_names(found: NameList, known: str, room: int, most: int) -> Iterator[tuple[int, str]]:
    """Yield lines of the newest names that fit and that are not in `known`."""
    # Most names that it has are found here: of a file that was read again, each one would else be
    # searched in all of the text.
    listed = set(list_names(known))
    for seq in sorted(found.names, reverse=True):
        head = f'"{message_id(seq)}": '
        left = min(room, most) - len(head) - 1
        kept: list[str] = []
        for name in found.names[seq]:
            if name in listed or name in known:
                continue
            left -= len(name) + 2
            if left < 0:
                break
            kept.append(name)
            known += f"\n{name}"
        if kept:
            line = head + ", ".join(kept)
            room -= len(line) + 1
            yield seq, line


def _read_staying(view: View, messages: Sequence[Message]) -> str:
    """Return the texts of the newest messages that stay."""
    gone = {message.seq for message in messages}
    texts: list[str] = []
    left = _NEAR
    for message in reversed(view.messages):
        if message.seq not in gone and left > 0:
            texts.append(_read_message(message))
            left -= len(texts[-1])
    return "\n".join(texts)


def _read_message(message: Message) -> str:
    """Return the texts of a message that this engine did not write, with inputs and results.

    "" of a damaged message, which a person may drop.
    """
    texts: list[str] = []
    if message.shape.flaw is not None:
        return ""
    for block in message.blocks:
        if block.type == "text" and block.by not in OURS:
            texts.append(str(block.value["text"]))
        elif block.type == "tool_use":
            texts.append(write_input(block.value["input"]))
        elif block.type == "tool_result":
            texts.append(read_result(block.value))
    return "\n".join(texts)
