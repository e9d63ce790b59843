"""Conversations written briefly, and a caller that drives `prepare`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from conversations.context import pipeline
from conversations.context.pipeline import (
    CompactionWanted,
    CountWanted,
    Prepared,
    Reply,
    Situation,
    SummaryReply,
    SummaryWanted,
    Veto,
)
from conversations.context.policy.gauge import Report
from conversations.context.policy.policy import Policy
from conversations.context.steps.protocol import CompactionReply
from conversations.context.view import wire
from conversations.context.view.edits import Transformation
from conversations.context.view.view import Kind, Message, View

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
Part = str | dict[str, Any]


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(id: str, name: str = "fetch_url", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def result(id: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def content(parts: Iterable[Part]) -> str:
    return wire.encode([text(part) if isinstance(part, str) else part for part in parts])


def view_of(*said: tuple[Kind, list[Part]]) -> View:
    """Make a view; the messages are numbered from 1."""
    view = View()
    for seq, (kind, parts) in enumerate(said, start=1):
        view = view.append(Message.parse(seq, kind, content(parts)))
    return view


def prompt(*parts: Part) -> tuple[Kind, list[Part]]:
    return "prompt", list(parts)


def answer(*parts: Part) -> tuple[Kind, list[Part]]:
    return "answer", list(parts)


def results(*parts: Part) -> tuple[Kind, list[Part]]:
    return "results", list(parts)


def round_of(id: str, given: Any, name: str = "fetch_url", **input: Any) -> list[Any]:
    """Make an answer that calls one tool, and its result."""
    return [answer(use(id, name, **input)), results(result(id, given))]


def blocks(view: View, index: int) -> list[dict[str, Any]]:
    return [block.value for block in view.messages[index].blocks]


def reported(view: View, tokens: int) -> Report:
    """Make the report of a call that had this view."""
    return Report(tokens, view.tokens, 0, view.edits)


def situation(
    view: View | None = None, tokens: int | None = None, *, window: int = 200_000, **more: Any
) -> Situation:
    """Make a situation in which the view was reported with so many tokens, or never."""
    report = reported(view, tokens) if view is not None and tokens is not None else None
    given: dict[str, Any] = {"overhead": 0, "bound_to": "", "binding": "e"}
    return Situation(model="model", window=window, report=report, **(given | more))


@dataclass
class Shell:
    """Answers every wish: vetoes the kinds it is told to, and lets `writes` write summaries."""

    writes: Callable[[SummaryWanted], SummaryReply | None] = lambda wanted: None
    vetoes: tuple[str, ...] = ()
    counts: Callable[[View], int | None] = lambda view: None
    compacts: Callable[[CompactionWanted], CompactionReply | None] = lambda wanted: None
    records: list[Transformation] = field(default_factory=list)
    wanted: list[SummaryWanted] = field(default_factory=list)
    counted: list[View] = field(default_factory=list)

    def prepare(
        self, view: View, situation: Situation, policy: Policy, *, harder: int = 0
    ) -> Prepared:
        steps = pipeline.prepare(view, situation, policy, harder=harder)
        reply: Reply = None
        while True:
            try:
                wish = steps.send(reply)
            except StopIteration as stop:
                prepared: Prepared = stop.value
                return prepared
            if isinstance(wish, SummaryWanted):
                self.wanted.append(wish)
                reply = self.writes(wish)
                continue
            if isinstance(wish, CountWanted):
                self.counted.append(wish.view)
                reply = self.counts(wish.view)
                continue
            if isinstance(wish, CompactionWanted):
                reply = self.compacts(wish)
                continue
            is_asked = wish.outcome == "applied" or (wish.outcome == "expected" and wish.reason)
            is_refused = wish.kind in self.vetoes and is_asked
            reply = Veto("not now") if is_refused else None
            if not is_refused:
                self.records.append(wish)

    @property
    def kinds(self) -> list[str]:
        return [f"{record.kind} {record.outcome}" for record in self.records]

    @property
    def applied(self) -> list[Transformation]:
        return [record for record in self.records if record.outcome == "applied"]


def writing(*texts: str | None, stop: str = "end_turn") -> Callable[[SummaryWanted], Any]:
    """Make a writer of summaries that gives these texts in turn; None is a failed call."""
    left = list(texts)

    def write(wanted: SummaryWanted) -> SummaryReply | None:
        given = left.pop(0) if len(left) > 1 else left[0]
        return None if given is None else SummaryReply(given, stop)

    return write


def keeping(wanted: SummaryWanted) -> SummaryReply:
    """Write a summary that keeps every name asked for."""
    names = [line[2:] for line in wanted.text.splitlines() if line.startswith("- ")]
    return SummaryReply("They worked on: " + " ".join(names), "end_turn")
