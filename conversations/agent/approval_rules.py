"""When a tool call needs a person's approval: it changes something, or could leak private data.

Text that the model reads (a mail, a page) may contain instructions. So once private data was read,
a destination must be one that the person named or allowed. A change cannot be undone, so each one
needs approval unless the person has allowed it.
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
    """A call that needs approval; `sources` are the private tools that ran before it."""

    use: ToolUse
    reason: Reason
    destination: str = ""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What is known before the calls of an answer are judged.

    `private`: tools whose private results the model may have read. `named`: destinations that occur
    in the person's own messages. `allowed`: (tool, destination) pairs allowed in this conversation.
    """

    private: tuple[str, ...] = ()
    named: AbstractSet[str] = frozenset()
    allowed: AbstractSet[tuple[str, str]] = frozenset()


def find_question(
    use: ToolUse, known: CallFacts, *, writes: bool, destination: str | None, rule: Rule = "ask"
) -> ApprovalQuestion | None:
    """Return the question the person must answer before this call runs; None when it may run."""
    if rule == "allow" or (use.name, destination or "") in known.allowed:
        return None
    if writes:
        return ApprovalQuestion(use, "write", destination or "", known.private)
    if destination is None or not known.private or _is_named(destination, known.named):
        return None
    return ApprovalQuestion(use, "private", destination, known.private)


def _is_named(destination: str, named: AbstractSet[str]) -> bool:
    """Return whether the person wrote the destination: `host:port`, or the host alone."""
    return destination.lower() in named
