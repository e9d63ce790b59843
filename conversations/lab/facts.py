"""Whether what an answer needed was available: in view, named by a recall stub, or recoverable.

A fact is in view if its exact characters occur in the system prompt, the tools or a message of the
request. It is named if the request names an original that contains it (`recall "toolu_..."`), and
recoverable if an original stored by then contains it, since recall is always offered. It is found
if a search for the words around it in the answer, without the fact itself, has an original that
contains it among its first three results.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from conversations.context.view import wire
from conversations.context.view.view import Message
from conversations.lab.records import Fact, Record
from conversations.lab.replayer import Step
from tools.text.ranking import Ranking

#: Number of search results that count; characters of an answer used on each side of a fact.
MOST_FOUND, _AROUND = 3, 200
_STUB = re.compile(r'recall ("[A-Za-z0-9_-]+"(?:, "[A-Za-z0-9_-]+")*)')
#: A line of the record of actions.
_ACTION = re.compile(r'^"(msg_\d+(?:/input)?)": ', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FactOutcome:
    """The availability of one fact at the call that needed it."""

    fact: Fact
    in_view: bool
    named: bool
    recoverable: bool
    found: bool = False


@dataclass(slots=True)
class Shares:
    """How many facts were needed, and how many of them were available in each way."""

    needed: int = 0
    in_view: int = 0
    #: In view or named by a stub in view.
    named: int = 0
    #: In view or recoverable.
    recoverable: int = 0
    #: In view or found by a search; 0 if no search was made.
    found: int = 0

    def add(self, found: FactOutcome) -> None:
        self.needed += 1
        self.in_view += found.in_view
        self.named += found.in_view or found.named
        self.recoverable += found.in_view or found.recoverable
        self.found += found.in_view or found.found

    def merge(self, other: Shares) -> None:
        self.needed += other.needed
        self.in_view += other.in_view
        self.named += other.named
        self.recoverable += other.recoverable
        self.found += other.found


class FactScorer:
    """Scores the facts of one record against the calls of one replay.

    With `searches` it searches for the facts that are not in view, which takes a while.
    """

    def __init__(self, record: Record, *, searches: bool = False) -> None:
        self._searches = searches
        self._messages = record.messages
        self._constant = "\n".join([record.system, *map(wire.encode, record.tools)])
        self._due: dict[int, list[Fact]] = {}
        for fact in record.facts:
            self._due.setdefault(_find_call(record, fact), []).append(fact)
        self._originals: list[tuple[int, str, str]] = list(_list_originals(record.messages))

    def score(self, step: Step) -> list[FactOutcome]:
        """Score the facts that this call needed; if it was not made, nothing is in view."""
        due = self._due.pop(step.at, [])
        if not due or step.prepared is None:
            return [FactOutcome(fact, False, False, False) for fact in due]
        texts = step.seen.learn("lab said", list[str], _read_message)
        stubs = {name for text in texts for name in find_recall_ids(text)}
        return [self._found(fact, step, texts, stubs) for fact in due]

    def list_missed(self) -> list[FactOutcome]:
        """Return the facts of calls that were never reached, as unavailable."""
        due, self._due = self._due, {}
        return [FactOutcome(fact, False, False, False) for facts in due.values() for fact in facts]

    def _found(self, fact: Fact, step: Step, texts: list[str], stubs: set[str]) -> FactOutcome:
        if fact.text in self._constant or any(fact.text in text for text in texts):
            return FactOutcome(fact, in_view=True, named=False, recoverable=False)
        known = [(name, text) for at, name, text in self._originals if at < step.at]
        holding = {name for name, text in known if fact.text in text}
        found = self._searches and bool(holding & set(self._search(fact, known)))
        return FactOutcome(fact, False, bool(holding & stubs), bool(holding), found)

    def _search(self, fact: Fact, known: list[tuple[str, str]]) -> list[str]:
        """Return the first results of a search for the words around the fact in its answer."""
        ranking = Ranking(self._write_query(fact))
        results = {text for name, text in known if not name.startswith("msg_")}
        for name, text in known:
            # Results and calls are originals of their own, so their messages are not searched.
            if not (name.startswith("msg_") and (text in results or name.endswith("/input"))):
                ranking.add(name, text, 0.5 if name.endswith("/input") else 1.0)
        return [row.key for row in ranking.list_best(MOST_FOUND)]

    def _write_query(self, fact: Fact) -> str:
        for block in self._messages[fact.used_at].blocks:
            text = "\n".join(read_texts(block.value))
            at = text.find(fact.text)
            if at >= 0:
                around = text[max(0, at - _AROUND) : at + len(fact.text) + _AROUND]
                return around.replace(fact.text, " ")
        return ""


def find_recall_ids(text: str) -> Iterator[str]:
    """Yield every id that a text names for recall; one line may name several."""
    for names in _STUB.findall(text):
        yield from (name.strip('"') for name in names.split(", "))
    yield from _ACTION.findall(text)


def _find_call(record: Record, fact: Fact) -> int:
    """Return the index of the answer whose call produced the message that uses the fact."""
    at = fact.used_at
    while at and record.messages[at - 1].kind == "answer":
        at -= 1
    return at


def _read_message(texts: list[str], message: Message) -> None:
    texts.append("\n".join(text for block in message.blocks for text in read_texts(block.value)))


def read_texts(block: dict[str, Any]) -> Iterator[str]:
    """Yield what the model reads of a block, without the bytes of images."""
    match block["type"]:
        case "text":
            yield block["text"]
        case "tool_use":
            yield from _list_strings([block["name"], block["input"]])
        case "tool_result":
            content = block.get("content", "")
            if isinstance(content, str):
                yield content
            else:
                yield from (text for nested in content for text in read_texts(nested))
        case "image" | "thinking" | "redacted_thinking":
            pass
        case "document":
            yield from _list_strings([value for key, value in block.items() if key != "source"])
        case _:
            yield from _list_strings(block)


def _list_strings(value: Any) -> Iterator[str]:
    """Yield every text of a JSON value, keys included, and other values as JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _list_strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _list_strings(item)
    else:
        yield wire.encode(value)


def _list_originals(messages: Iterable[Message]) -> Iterator[tuple[int, str, str]]:
    """Yield the originals for recall: results and inputs of calls by id, messages by number."""
    for at, message in enumerate(messages):
        parts, inputs = list[str](), list[str]()
        for block in message.blocks:
            text = "\n".join(read_texts(block.value))
            if block.type == "tool_result":
                yield at, block.id, text
            if block.type == "tool_use":
                yield at, f"{block.id}/input", text
                inputs.append(text)
            if block.type in ("tool_result", "text"):
                parts.append(text)
        if parts:
            yield at, f"msg_{message.seq}", "\n\n".join(parts)
        if inputs:
            yield at, f"msg_{message.seq}/input", "\n\n".join(inputs)
