"""What a turn has already done, for the worker that resumes it.

A worker dies, or releases the turn while a person is asked for approval. Counters continue where
they were, and the tool calls of the last answer continue from what was stored of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from conversations.agent.answer import ToolUse
from conversations.agent.ports import ToolDone

#: Codes of results that mean the call was invalid, not that the tool failed.
WRONG = ("unknown_tool", "bad_input")


@dataclass(frozen=True, slots=True)
class OpenRound:
    """An answer whose tool calls have no results message yet.

    `call` is the API call that gave the answer. `done` are the tool calls that have ended;
    `started` those that were started and whose outcome is unknown, with their effects; all others
    were not started.
    """

    call: int
    uses: tuple[ToolUse, ...]
    done: Mapping[str, ToolDone] = field(default_factory=dict)
    started: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TurnProgress:
    """The progress of a turn; `first` is the number of its first message (0: the last in view)."""

    first: int = 0
    rounds: int = 0
    #: Tool calls before the open round, and consecutive rounds in which none could be run.
    tool_calls: int = 0
    wrong: int = 0
    pauses: int = 0
    overflows: int = 0
    #: Requests that the API permanently refused.
    refusals: int = 0
    #: Number of the message written before the model declined (0: none); None: it did not.
    declined: int | None = None
    #: Ids of its tool calls.
    ids: frozenset[str] = frozenset()
    open: OpenRound | None = None
