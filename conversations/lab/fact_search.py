"""Which original has a fact, and whether it is found by the words that the agent was to write.

The query is what stands around the fact in the answer that used it, argument values included,
without the fact itself, in whole words; the ranking is that of the tool `recall`, where originals
that the request shows anyway rank lower, and what was said last before the call, never the answer
itself, is the context of a query that says little. A fact is found if an original that has it is
among the first three, or a near copy that one of these names. In a request the agent also sees
which originals it can read: in lists, and in the notices of shortened results. Such a line tells
the original apart if it is one of the first three that the same query finds among these lines.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from conversations.context.view.message_shape import write_label
from conversations.context.view.searched_originals import (
    INPUT,
    SHOWN_WEIGHT,
    SearchedOriginal,
    write_context,
)
from conversations.context.view.view import Message, View
from conversations.lab.own_facts import list_own_facts
from conversations.lab.records import Fact, Record
from conversations.lab.said_texts import list_originals, list_values, read_texts
from tools.text.ranking import RankedText, Ranking, choose_distinct

#: Results and lines that count; characters of the answer on each side of a fact.
MOST_FOUND, AROUND = 3, 100
_NAMED = re.compile(r'recall ("[A-Za-z0-9_-]+"(?:, "[A-Za-z0-9_-]+")*)')
#: The rest of a word at the border of what is read around a fact.
_FIRST, _LAST = re.compile(r"\w{1,20}"), re.compile(r"\w{1,20}$")
#: A line of the recall list or of the record of actions.
_LISTED = re.compile(r'^("msg_\d+(?:/input)?"(?:, "msg_\d+")*)(?: and \d+ earlier)?: ')
#: Characters of a shortened result by which it can be recognised.
_HEAD = 1_000


@dataclass(frozen=True, slots=True)
class Finding:
    """The originals that had a fact when it was needed, by id, with their texts.

    `found` is the first of them among the results of the search, "" if there is none; `is_shown`
    says whether the result itself shows the fact.
    """

    query: str
    holding: dict[str, str]
    found: str
    is_shown: bool


@dataclass(frozen=True, slots=True)
class _Searched:
    """A query, the originals that have the fact, and the best rows of the search, best first.

    Rows that cannot be among the first ones, even if all before them are in view, are left out.
    """

    query: str
    holding: dict[str, str]
    rows: tuple[RankedText, ...]


@dataclass(slots=True)
class IndexLines:
    """What a view says of originals that can be read: their ids, and the words beside them."""

    labels: dict[str, str] = field(default_factory=dict)
    lines: list[tuple[tuple[str, ...], str]] = field(default_factory=list)

    def read(self, message: Message) -> None:
        for block in message.blocks:
            if block.type == "tool_use":
                self.labels[block.id] = write_label(block.value)
            text = "\n".join(read_texts(block.value))
            if block.type == "tool_result":
                if ids := tuple(find_recall_ids(text)):
                    self.lines.append((ids, f"{self.labels.get(block.id, '')}\n{text[:_HEAD]}"))
            elif "recall" in text or "msg_" in text:
                for line in text.splitlines():
                    if ids := tuple(find_recall_ids(line)):
                        self.lines.append((ids, line))

    def list_told(self, query: str) -> list[str]:
        """Return the first originals that the lines name for a query, best line first."""
        ranking = Ranking(query)
        for at, (_, words) in enumerate(self.lines):
            ranking.add(str(at), words)
        best = ranking.list_all()[:MOST_FOUND]
        return [key for row in best for key in self.lines[int(row.key)][0]][:MOST_FOUND]


class FactSearch:
    """The originals of one record, and what a search finds in them for each fact."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self.originals = list(list_originals(record.messages))
        #: The text of each as it is searched; made once, because results of a search refer to it.
        self._texts = [one.searched for _, one in self.originals]
        self._found: dict[Fact, _Searched] = {}

    @cached_property
    def own_facts(self) -> tuple[Fact, ...]:
        return list_own_facts(self._record)

    def find(self, fact: Fact, before: int, shown: frozenset[str] = frozenset()) -> Finding:
        """Search for a fact among the originals before a message; `shown` are those in view."""
        if fact not in self._found:
            self._found[fact] = self._search(fact, before)
        one = self._found[fact]
        rows = sorted(
            one.rows, key=lambda row: -row.score * (SHOWN_WEIGHT if row.key in shown else 1.0)
        )
        for row in choose_distinct(rows, MOST_FOUND):
            for key in _list_entry(row):
                if key in one.holding:
                    return Finding(one.query, one.holding, key, fact.text in row.passage)
        return Finding(one.query, one.holding, "", is_shown=False)

    def _search(self, fact: Fact, before: int) -> _Searched:
        query = write_query(self._record.messages[fact.used_at], fact)
        count = bisect_left(self.originals, before, key=lambda row: row[0])
        known = self.originals[:count]
        ranking = Ranking(query, write_context([one for _, one in known]))
        holding = dict[str, str]()
        for (at, one), text in zip(known, self._texts[:count], strict=True):
            ranking.add(one.id, text, one.weight, one.marks)
            if fact.text in one.text:
                holding |= dict.fromkeys(self._list_ids(at, one), one.text)
        rows = ranking.list_all()
        first = choose_distinct(rows, MOST_FOUND)
        least = SHOWN_WEIGHT * first[-1].score if first else 0.0
        return _Searched(query, holding, tuple(row for row in rows if row.score >= least))

    def _list_ids(self, at: int, one: SearchedOriginal) -> Iterator[str]:
        """Yield the ids of an original: its own, and that of its message."""
        yield one.id
        seq = self._record.messages[at].seq
        yield f"msg_{seq}{INPUT}" if one.id.endswith(INPUT) else f"msg_{seq}"


def _list_entry(row: RankedText) -> Iterator[str]:
    """Yield the ids that a result names: results and inputs of its call, and of near copies."""
    for key in (row.key, *row.copies):
        call = key.removesuffix(INPUT)
        yield from (key, call, call + INPUT)


def read_index(view: View) -> IndexLines:
    """Read what a view says of originals; each message is read once."""
    return view.fold_cached("lab index", IndexLines, IndexLines.read)


def write_query(answer: Message, fact: Fact) -> str:
    """Write the words around a fact in the answer that uses it, without the fact."""
    parts: list[str] = []
    for block in answer.blocks:
        if block.type == "tool_use":
            parts += list_values([block.value["name"], block.value["input"]])
        else:
            parts += read_texts(block.value)
    text = "\n".join(parts)
    at = text.find(fact.text)
    if at < 0:
        return ""
    start, end = max(0, at - AROUND), at + len(fact.text) + AROUND
    first, rest = _LAST.search(text, max(0, start - 20), start), _FIRST.match(text, end)
    around = text[first.start() if first else start : rest.end() if rest else end]
    return around.replace(fact.text, " ")


def find_recall_ids(text: str) -> Iterator[str]:
    """Yield every id that a text names for recall; one line may name several."""
    listed = _LISTED.match(text)
    for names in ([listed[1]] if listed else []) + _NAMED.findall(text):
        yield from (name.strip('"') for name in names.split(", "))
