"""What a turn has done already, where another worker goes on with it.

A worker dies, or gives the turn back while a person is asked. What was counted goes on being
counted, and the tool calls of the last answer go on from what was stored of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from conversations.agent.answer import ToolUse
from conversations.agent.ports import ToolDone

#: Codes of results that say the call was wrong, not that the tool failed.
WRONG = ("unknown_tool", "bad_input")


@dataclass(frozen=True, slots=True)
class OpenRound:
    """An answer whose tool calls have no results message yet.

    `call` is the one that gave it. `done` are the calls that ended, `started` those that left and
    of which nothing more is known, with their effects; the others have not begun.
    """

    call: int
    uses: tuple[ToolUse, ...]
    done: Mapping[str, ToolDone] = field(default_factory=dict)
    started: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TurnProgress:
    """Where a turn stands; `first` is the number of its first message (0: the last in view)."""

    first: int = 0
    rounds: int = 0
    #: Tool calls before the open round, and rounds in a row in which none could be run.
    tool_calls: int = 0
    wrong: int = 0
    pauses: int = 0
    overflows: int = 0
    #: Ids of its tool calls.
    ids: frozenset[str] = frozenset()
    open: OpenRound | None = None
