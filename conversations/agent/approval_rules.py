"""Why a call asks the person first: it changes something, or it could carry private data away.

Text that the model reads may tell it what to do (a mail, a page). So whoever is told something
after private data was read must be somebody whom the person named or allowed; and what changes
something cannot be taken back, so it is asked for each time until the person says otherwise.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from conversations.agent.answer import ToolUse

Rule = Literal["ask", "allow", "never"]
Reason = Literal["write", "private"]


@dataclass(frozen=True, slots=True)
class ApprovalQuestion:
    """A call that a person has to allow; `sources` are the private tools that ran before it."""

    use: ToolUse
    reason: Reason
    destination: str = ""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What is known before the calls of an answer are judged.

    `private`: tools whose private results the model may have read. `named`: destinations in the
    person's own words. `allowed`: tool and destination of what was allowed for the conversation.
    """

    private: tuple[str, ...] = ()
    named: AbstractSet[str] = frozenset()
    allowed: AbstractSet[tuple[str, str]] = frozenset()


def find_question(
    use: ToolUse, known: CallFacts, *, writes: bool, destination: str | None, rule: Rule = "ask"
) -> ApprovalQuestion | None:
    """Say what the person is asked before this call runs, if anything."""
    if rule == "allow" or (use.name, destination or "") in known.allowed:
        return None
    if writes:
        return ApprovalQuestion(use, "write", destination or "", known.private)
    if destination is None or not known.private or _is_named(destination, known.named):
        return None
    return ApprovalQuestion(use, "private", destination, known.private)


def _is_named(destination: str, named: AbstractSet[str]) -> bool:
    """Say whether the person wrote it: `host:port`, or the host alone."""
    return destination.lower() in named
