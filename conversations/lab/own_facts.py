"""Facts that the agent made itself: written into the input of a call, and needed again later.

Addresses of mails it sent, files it wrote, branches, parameters of commands: the first appearance
of such a text anywhere is in the input of one of its calls, and it is used again by an answer at
least four messages later, as for the facts of the recordings. Only texts count that can hardly be
written without having been seen: at least six characters, with a digit or a mark within.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from conversations.context.view import wire
from conversations.context.view.view import Message
from conversations.lab.records import Fact, Record
from conversations.lab.said_texts import list_strings, read_texts

#: Most facts of a record; fewest messages between making and using one.
MOST, _GAP = 200, 4
_TOKEN = re.compile(r"[^\s\"'`(){}\[\]<>,;|=*]{6,120}")
_MARK = re.compile(r"\w[/\\@_.:-]\w|\d")
_ENDS = ".:!?…-/\\"


def list_own_facts(record: Record) -> tuple[Fact, ...]:
    """Return the facts of the agent's own calls, in the order of their use."""
    seen = dict.fromkeys(_read_tokens([record.system, *map(wire.encode, record.tools)]), -1)
    last: dict[str, int] = {}
    made: dict[str, int] = {}
    found: dict[str, Fact] = {}
    for at, message in enumerate(record.messages):
        inputs, is_answer = set(_read_tokens(_read_inputs(message))), message.kind == "answer"
        for token in sorted({*inputs, *_read_tokens(_read_all(message))}):
            is_new = token not in seen and token not in made
            if is_new and token in inputs:
                made[token] = at
            elif is_new:
                seen[token] = at
            elif is_answer and token in made and token not in found and at - made[token] >= _GAP:
                found[token] = Fact(token, made[token], at, last[token] == made[token])
            last[token] = at
    return tuple(_leave_out_parts(record, found.values()))


def _leave_out_parts(record: Record, facts: Iterable[Fact]) -> Iterator[Fact]:
    """Yield at most `MOST` of the facts, those with one source first, without quoted ones.

    A text that stood within a longer one before it was made is none.
    """
    texts = ["\n".join(_read_all(message)) for message in record.messages]
    constant = "\n".join([record.system, *map(wire.encode, record.tools)])
    chosen = sorted(facts, key=lambda fact: (not fact.is_sole, fact.used_at))
    left = MOST
    for fact in chosen:
        before = texts[: fact.first_seen]
        if left and fact.text not in constant and not any(fact.text in text for text in before):
            left -= 1
            yield fact


def _read_tokens(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for token in _TOKEN.findall(text):
            plain = token.strip(_ENDS)
            if len(plain) >= 6 and _MARK.search(plain):
                yield plain


def _read_inputs(message: Message) -> Iterator[str]:
    for block in message.blocks:
        if block.type == "tool_use":
            yield from list_strings(block.value["input"])


def _read_all(message: Message) -> Iterator[str]:
    for block in message.blocks:
        yield from read_texts(block.value)
