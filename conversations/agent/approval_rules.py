"""When a tool call needs a person's approval: it changes something, or could leak private data.

Text that the model reads (a mail, a page) may contain instructions. So once private data was read,
a destination must be one that the person named or allowed, and so it must when the call carries
words of what was typed or read elsewhere. A change cannot be undone, so each one needs approval
unless the person has allowed it. Where nothing may leave unasked, every destination needs approval,
and so does every call of a tool for which the site has the rule "ask".
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from conversations.agent.answer import ToolUse

Rule = Literal["ask", "allow", "never"]
Reason = Literal["write", "private", "egress", "rule"]


@dataclass(frozen=True, slots=True)
class ApprovalQuestion:
    """A call that needs approval; `sources` name what private was read before it.

    `words`: what it carries of that, each word with its source.
    """

    use: ToolUse
    reason: Reason
    destination: str = ""
    sources: tuple[str, ...] = ()
    words: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What is known before the calls of an answer are checked.

    `private`: private sources that the model may have read. `named`: destinations that occur in the
    person's own messages. `allowed`: (tool, destination) pairs allowed in this conversation.
    `asks_all`: nothing leaves unasked, whatever the site allows.
    """

    private: tuple[str, ...] = ()
    named: AbstractSet[str] = frozenset()
    allowed: AbstractSet[tuple[str, str]] = frozenset()
    asks_all: bool = False


def find_question(
    use: ToolUse,
    known: CallFacts,
    *,
    writes: bool,
    destination: str | None,
    rule: Rule | None = None,
    telling: Callable[[], tuple[str, ...]] = tuple,
) -> ApprovalQuestion | None:
    """Return the question the person must answer before this call runs; None when it may run.

    `rule` is the site's for this tool, if it has one. `telling` compares, which is slow: it lists
    the sources that are not private whose words the call carries by no accident.
    """
    if (use.name, destination or "") in known.allowed:
        return None
    if known.asks_all and destination is not None:
        return ApprovalQuestion(use, "egress", destination, known.private)
    if rule == "allow":
        return None
    if writes:
        return ApprovalQuestion(use, "write", destination or "", known.private)
    if destination is not None and not is_named(destination, known.named):
        sources = known.private or telling()
        if sources:
            return ApprovalQuestion(use, "private", destination, sources)
    if rule == "ask":
        return ApprovalQuestion(use, "rule", destination or "", known.private)
    return None


def is_named(destination: str, named: AbstractSet[str]) -> bool:
    """Return whether the person wrote the destination: `host:port`, or the host alone."""
    return destination.lower() in named
