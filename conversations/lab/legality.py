"""An independent check of what is sent: pairing, order and emptiness, read from the wire text.

It shares no code with the engine's own rules, so an error there is not repeated here. The facts of
a message are cached by its text; the order of messages is checked for every request.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from conversations.context.view.view import Message


@dataclass(frozen=True, slots=True)
class _Facts:
    calls: tuple[str, ...]
    answered: tuple[str, ...]
    #: Whether a block other than a result precedes a result; whether there is any such block.
    is_mixed: bool
    has_others: bool
    flaws: tuple[str, ...]
    #: Whether it begins with a compaction block, and the indexes of signed ones.
    is_compaction: bool = False
    signed: tuple[int, ...] = ()


@dataclass(slots=True)
class _Turns:
    """The state of the turns after the messages read so far."""

    found: list[str] = field(default_factory=list)
    role: str = ""
    seen: set[str] = field(default_factory=set)
    #: Calls of the last assistant turn, and those of them that have a result.
    open: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    is_behind_text: bool = False

    def read(self, role: str, facts: _Facts) -> None:
        self.found += facts.flaws
        if facts.signed and (self.role or facts.signed != (0,)):
            self.found.append("a signed compaction block that does not come first")
        if role != self.role:
            self._turn(role, facts)
        for call in facts.calls:
            if call in self.seen:
                self.found.append(f"the id {call} repeats")
            self.seen.add(call)
            self.open.add(call)
        for call in facts.answered:
            if call not in self.open or call in self.answered:
                self.found.append(f"a result without its call: {call}")
            self.answered.add(call)
        if facts.answered and (facts.is_mixed or self.is_behind_text):
            self.found.append("a result behind other blocks")
        self.is_behind_text = self.is_behind_text or (role == "user" and facts.has_others)

    def _turn(self, role: str, facts: _Facts) -> None:
        if self.role == "user":
            self.demand_answers()
        if not self.role and role != "user" and not facts.is_compaction:
            self.found.append("the first message is not the user's")
        if role == "assistant":
            self.open, self.answered = set(), set()
        self.is_behind_text, self.role = False, role

    def demand_answers(self) -> None:
        if missing := sorted(self.open - self.answered):
            self.found.append(f"calls without a result: {missing[:3]}")


class LegalityCheck:
    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Facts] = {}

    def find_violations(self, messages: Iterable[Message]) -> list[str]:
        """Return what the API would refuse of these messages; empty when it would accept them."""
        turns = _Turns()
        for message in messages:
            if not message.is_empty:
                turns.read(message.role, self._facts(message))
        if turns.role != "user":
            turns.found.append("the last message is not the user's")
        turns.demand_answers()
        return turns.found

    def _facts(self, message: Message) -> _Facts:
        name = (message.role, message.content)
        if name not in self._known:
            self._known[name] = _read_facts(message.role, message.content)
        return self._known[name]


def _read_facts(role: str, content: str) -> _Facts:
    blocks = json.loads(content)
    kinds = [block["type"] for block in blocks]
    results = [at for at, kind in enumerate(kinds) if kind == "tool_result"]
    flaws = []
    if results and role != "user":
        flaws.append("the assistant gives a result")
    if "tool_use" in kinds and role != "assistant":
        flaws.append("the user calls a tool")
    if any(b["type"] == "text" and not b["text"].strip() for b in blocks):
        flaws.append("a blank text")
    if role == "assistant" and kinds and kinds[-1] in ("thinking", "redacted_thinking"):
        flaws.append("thinking stands last")
    return _Facts(
        tuple(block["id"] for block in blocks if block["type"] == "tool_use"),
        tuple(blocks[at]["tool_use_id"] for at in results),
        results != list(range(len(results))),
        len(results) < len(blocks),
        tuple(flaws),
        kinds[:1] == ["compaction"],
        tuple(at for at, b in enumerate(blocks) if b["type"] == "compaction" and "signature" in b),
    )
