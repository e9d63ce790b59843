"""Whether what an answer needed was available: in view, usably named, or recoverable.

A fact is something that the agent was shown and used later (the recording says which), or that it
made itself (`own_facts.py`). It is in view if its exact characters occur in the system prompt, the
tools or a message of the request. It is named if the request names an original that has it, usably
if the words that the agent was about to write find that original (`fact_search.py`), by a search or
among the lines of the request. It is recoverable if the request offers the tool `recall` and the
log of the replay has an original with it by then, and lost otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conversations.context.view import wire
from conversations.context.view.searched_originals import list_shown_ids
from conversations.context.view.view import Message
from conversations.lab.fact_search import FactSearch, Finding, IndexLines, read_index
from conversations.lab.records import Fact, Record
from conversations.lab.replayer import Step
from conversations.lab.said_texts import read_texts

#: The name of the tool that gives originals.
_RECALL = "recall"


@dataclass(frozen=True, slots=True)
class FactOutcome:
    """The availability of one fact at the call that needed it.

    `told` is the original that a line of the request tells apart, "" if none does; `finding` is
    None while the fact is in view, and for a call that was not made.
    """

    fact: Fact
    in_view: bool = False
    named: bool = False
    told: str = ""
    finding: Finding | None = None
    is_own: bool = False
    can_recall: bool = False

    @property
    def is_recoverable(self) -> bool:
        return self.in_view or self.can_recall

    @property
    def is_found(self) -> bool:
        return self.in_view or bool(self.finding and self.finding.found)


@dataclass(slots=True)
class Shares:
    """How many facts were needed, and how many of them were available; each includes in view."""

    needed: int = 0
    in_view: int = 0
    #: Named by an id in the request.
    named: int = 0
    #: Found by a search.
    found: int = 0
    #: Found by a search, or told apart by a line of the request.
    usable: int = 0
    recoverable: int = 0

    def add(self, one: FactOutcome) -> None:
        self.needed += 1
        self.in_view += one.in_view
        self.named += one.in_view or one.named
        self.found += one.is_found
        self.usable += one.is_found or bool(one.told)
        self.recoverable += one.is_recoverable

    def merge(self, other: Shares) -> None:
        self.needed += other.needed
        self.in_view += other.in_view
        self.named += other.named
        self.found += other.found
        self.usable += other.usable
        self.recoverable += other.recoverable

    @property
    def lost(self) -> int:
        return self.needed - self.recoverable


class FactScorer:
    """Scores the facts of one record against the calls of one replay.

    `search` may be shared by the replays of a record, because it depends on the record alone.
    """

    def __init__(self, record: Record, search: FactSearch, *, with_own: bool = False) -> None:
        self._search = search
        self._constant = "\n".join([record.system, *map(wire.encode, record.tools)])
        self._due: dict[int, list[tuple[Fact, bool]]] = {}
        own = search.own_facts if with_own else ()
        for fact, is_own in (
            *((one, False) for one in record.facts),
            *((one, True) for one in own),
        ):
            self._due.setdefault(_find_call(record, fact), []).append((fact, is_own))

    def score(self, step: Step) -> list[FactOutcome]:
        """Score the facts that this call needed; if it was not made, nothing is in view."""
        due = self._due.pop(step.at, [])
        if not due or step.prepared is None:
            return [FactOutcome(fact, is_own=is_own) for fact, is_own in due]
        texts = step.seen.fold_cached("lab said", list[str], _read_message)
        index = read_index(step.seen)
        shown = list_shown_ids(step.seen)
        found = (
            self._score_fact(fact, step.at, texts, index, shown, is_own=own) for fact, own in due
        )
        return [replace(one, can_recall=self._can_recall(one, step)) for one in found]

    def _can_recall(self, one: FactOutcome, step: Step) -> bool:
        """Whether recall is offered and can show the fact from the log of the replay."""
        tools = dict(step.envelope.parameters).get("tools", ())
        if one.finding is None or not any(tool.get("name") == _RECALL for tool in tools):
            return False
        if not step.unlogged:
            return bool(one.finding.holding)
        logged = (
            original.text
            for at, original in self._search.originals
            if at < step.at and at not in step.unlogged
        )
        return any(one.fact.text in text for text in logged)

    def list_missed(self) -> list[FactOutcome]:
        """Return the facts of calls that were never reached, as unavailable."""
        due, self._due = self._due, {}
        return [
            FactOutcome(fact, is_own=is_own) for facts in due.values() for fact, is_own in facts
        ]

    def _score_fact(
        self,
        fact: Fact,
        at: int,
        texts: list[str],
        index: IndexLines,
        shown: frozenset[str],
        *,
        is_own: bool,
    ) -> FactOutcome:
        if fact.text in self._constant or any(fact.text in text for text in texts):
            return FactOutcome(fact, in_view=True, is_own=is_own)
        finding = self._search.find(fact, at, shown)
        told = (key for key in index.list_told(finding.query) if key in finding.holding)
        named = any(key in finding.holding for keys, _ in index.lines for key in keys)
        return FactOutcome(fact, named=named, told=next(told, ""), finding=finding, is_own=is_own)


def _find_call(record: Record, fact: Fact) -> int:
    """Return the index of the answer whose call produced the message that uses the fact."""
    at = fact.used_at
    while at and record.messages[at - 1].kind == "answer":
        at -= 1
    return at


def _read_message(texts: list[str], message: Message) -> None:
    texts.append("\n".join(text for block in message.blocks for text in read_texts(block.value)))
