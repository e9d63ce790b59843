"""What models do with thinking, and how a call of ours has to say that it wants little of it.

Some models think when a request does not say whether they shall, some cannot be kept from it, and
what they think counts to the limit of the answer. So a call whose answer is short by nature (a
title, a summary) switches thinking off where the model lets it; where not, it asks for little and
leaves room for it. Facts by model, of 2026-11-24: the API's documentation, recorded exchanges, and
the types of SDK 2.11 (thinking types, effort levels).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

Effort = Literal["low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[Effort, ...] = ("low", "medium", "high", "xhigh", "max")
#: Tokens that an answer is given on top for thinking that cannot be switched off.
ROOM = 2_048


@dataclass(frozen=True, slots=True)
class ThinkingFacts:
    """`off` is the thinking type that switches it off; "" where there is none."""

    #: Thinks when the request says nothing of it.
    is_default: bool = True
    off: Literal["disabled", "between_tools", ""] = ""
    #: The highest effort with which it may be off.
    off_up_to: Effort = "max"
    efforts: tuple[Effort, ...] = EFFORTS
    #: The effort of a request that names none.
    effort: Effort = "high"


_ALWAYS = ThinkingFacts()
_SILENT = ThinkingFacts(is_default=False, off="disabled")
_SIX = replace(_SILENT, efforts=("low", "medium", "high", "max"))
_EXTENDED = replace(_SILENT, efforts=())
FACTS: dict[str, ThinkingFacts] = {
    **dict.fromkeys(
        ("claude-fable-5-2", "claude-fable-5-1", "claude-fable-5", "claude-mythos-5-2",
         "claude-mythos-5-1", "claude-mythos-5"),
        _ALWAYS,
    ),
    "claude-opus-5-5": replace(_ALWAYS, effort="medium"),
    "claude-sonnet-5-5": ThinkingFacts(off="between_tools", off_up_to="high"),
    "claude-haiku-5-5": ThinkingFacts(off="disabled", off_up_to="xhigh", effort="medium"),
    "claude-opus-5": ThinkingFacts(off="disabled", off_up_to="high"),
    "claude-sonnet-5": ThinkingFacts(off="disabled"),
    "claude-opus-4-8": _SILENT,
    "claude-opus-4-7": _SILENT,
    "claude-opus-4-6": _SIX,
    "claude-sonnet-4-6": _SIX,
    "claude-opus-4-5": replace(_EXTENDED, efforts=("low", "medium", "high")),
    "claude-sonnet-4-5": _EXTENDED,
    "claude-haiku-4-5": _EXTENDED,
}  # fmt: skip
#: Of a model that is not listed nothing is assumed: it may think, and takes no parameter for it.
_UNKNOWN = ThinkingFacts(efforts=())


def find_thinking_facts(model: str) -> ThinkingFacts:
    """Return what is known of a model; an id may end in the date of a snapshot."""
    return FACTS.get(model) or FACTS.get(_strip_date(model), _UNKNOWN)


def _strip_date(model: str) -> str:
    name, _, date = model.rpartition("-")
    return name if len(date) == 8 and date.isdecimal() else model


@dataclass(frozen=True, slots=True)
class QuietCall:
    """What the request of a call says that shall not think, or little.

    `thinking` is None and `effort` "" where it says nothing; `room` are tokens for what it thinks
    all the same.
    """

    thinking: dict[str, Any] | None = None
    effort: str = ""
    room: int = 0


def choose_quiet_call(model: str) -> QuietCall:
    """Return how a call of this model says that it wants no thinking."""
    facts = find_thinking_facts(model)
    if not facts.is_default:
        return QuietCall()
    if facts.off == "disabled":
        return QuietCall({"type": facts.off})
    effort = EFFORTS[0] if facts.efforts else ""
    return QuietCall({"type": facts.off} if facts.off else None, effort, ROOM)


def choose_effort(model: str, wanted: str) -> str:
    """Return the level of the model that is nearest to the one wanted; "" is its default.

    Of two that are equally near the lower one, which costs less.
    """
    levels = find_thinking_facts(model).efforts
    if not wanted or not levels or wanted not in EFFORTS:
        return ""
    at = EFFORTS.index(wanted)
    return min(levels, key=lambda level: (abs(EFFORTS.index(level) - at), EFFORTS.index(level)))
