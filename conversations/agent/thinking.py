"""What each model does with thinking, and the parameters with which a call asks for little of it.

Some models think unless a request forbids it, some cannot be kept from it, and thinking counts
towards the output limit. So a call with a short answer (a title, a summary) switches thinking off
if the model allows that; otherwise it requests the lowest effort and a higher output limit. Facts
by model, of 2026-11-24: the API's documentation, recorded exchanges, and the types of SDK 2.11
(thinking types, effort levels).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

Effort = Literal["low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[Effort, ...] = ("low", "medium", "high", "xhigh", "max")
#: Tokens added to the output limit for thinking that cannot be switched off.
ROOM = 2_048


@dataclass(frozen=True, slots=True)
class ThinkingFacts:
    """How a model thinks; `off` is the thinking type that switches it off, "" if there is none."""

    #: Whether the model thinks when the request has no thinking parameter.
    is_default: bool = True
    off: Literal["disabled", "between_tools", ""] = ""
    #: The highest effort at which thinking may be off.
    off_up_to: Effort = "max"
    efforts: tuple[Effort, ...] = EFFORTS
    #: The effort of a request without an effort parameter.
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
#: An unlisted model: it may think, and no parameter is sent for it.
_UNKNOWN = ThinkingFacts(efforts=())


def find_thinking_facts(model: str) -> ThinkingFacts:
    """Return the facts of a model; its id may end in the date of a snapshot."""
    return FACTS.get(model) or FACTS.get(_strip_date(model), _UNKNOWN)


def _strip_date(model: str) -> str:
    name, _, date = model.rpartition("-")
    return name if len(date) == 8 and date.isdecimal() else model


@dataclass(frozen=True, slots=True)
class QuietCall:
    """The parameters of a call that should think little or not at all.

    `thinking` is None and `effort` "" where the request has no such parameter; `room` are the
    output tokens added for thinking that happens all the same.
    """

    thinking: dict[str, Any] | None = None
    effort: str = ""
    room: int = 0


def choose_quiet_call(model: str) -> QuietCall:
    """Return the parameters with which a call of this model thinks as little as possible."""
    facts = find_thinking_facts(model)
    if not facts.is_default:
        return QuietCall()
    if facts.off == "disabled":
        return QuietCall({"type": facts.off})
    effort = EFFORTS[0] if facts.efforts else ""
    return QuietCall({"type": facts.off} if facts.off else None, effort, ROOM)


def choose_effort(model: str, wanted: str) -> str:
    """Return the model's effort level nearest to the wanted one; "" is its default.

    Of two equally near levels the lower one, which costs less.
    """
    levels = find_thinking_facts(model).efforts
    if not wanted or not levels or wanted not in EFFORTS:
        return ""
    at = EFFORTS.index(wanted)
    return min(levels, key=lambda level: (abs(EFFORTS.index(level) - at), EFFORTS.index(level)))
