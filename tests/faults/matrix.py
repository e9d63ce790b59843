"""RELIABILITY.md, group A, as a table: a fault, ordered by a word in the prompt, and its outcome.

A name begins with the number of its row. Cases that do not fit a table (several users, a clock, a
second listener) are tests named after their rows, in `test_model_api` and `test_waits`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from conversations.agent.finish import LEFT_OUT, WRONG_CALLS
from conversations.claude.client import Deadlines

#: Rows of the group; numbers 13 and 24 are not used.
NUMBERS = tuple(f"F{number}" for number in range(1, 30) if number not in (13, 24))


@dataclass(frozen=True)
class Row:
    """A row of the matrix: the ordered fault and the expected outcome."""

    name: str
    fault: str
    #: State, finish reason and error code of the turn.
    end: tuple[str, str, str]
    #: Number of requests made.
    requests: int
    #: A text that the page shows.
    says: str = ""
    words: str = "Answer in 200 words"
    #: Whether the text of the answer, or a part of it, is kept.
    keeps: bool = False
    #: Whether the answer that was completed has nothing in it.
    is_empty: bool = False
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def deadlines(self) -> Deadlines | None:
        """Return the deadlines under test; all others are long, for a busy machine."""
        match self.name.partition(" "):
            case "F15", _, "in time":
                return None
            case "F15", _, "once":
                return Deadlines(3, 300, 600)
            case "F15", _, _:
                return Deadlines(0.4, 300, 600)
            case "F16", _, _:
                return Deadlines(300, 1, 600)
        return None


DONE = ("done", "end_turn", "")
BUSY = ("failed", "", "overloaded")
DOWN = ("failed", "", "upstream")
CUT = ("failed", "", "cut")
ODD = ("failed", "", "protocol_error")
LATE = ("failed", "", "timeout")
ROWS = [
    Row("F1", "bad_request", ("failed", "", "invalid_request"), 1, "read what the API said"),
    Row("F1 conflict", "conflict", DOWN, 4, "The API failed"),
    Row("F2 nothing to reduce", "overflow", ("failed", "context", "overflow"), 1, "too long"),
    Row("F2 older text", "context_limit", ("failed", "context", "overflow"), 1, "too long"),
    Row("F4 key", "authentication", ("failed", "", "authentication"), 1, "administrator"),
    Row("F4 right", "permission", ("failed", "", "permission"), 1, "administrator"),
    Row("F4 money", "billing", ("failed", "", "billing"), 1, "administrator"),
    Row("F5", "not_found", ("failed", "", "not_found"), 1, "AGENTWEB_MODEL"),
    Row("F6", "too_large", ("failed", "context", "overflow"), 1, "too long"),
    Row("F7 for ever", "rate_limited:0", ("failed", "", "rate_limited"), 4, "rate limit"),
    Row("F7 no header", "rate_limited:none:x2", DONE, 3, keeps=True),
    Row("F8", "rate_limited:3600", ("failed", "", "rate_limited"), 1, "rate limit"),
    Row("F10 500", "api_error", DOWN, 4, "The API failed"),
    Row("F10 500 once", "api_error:x1", DONE, 2, keeps=True),
    Row("F10 502", "status:502:x1", DONE, 2, keeps=True),
    Row("F10 503", "unavailable:x2", DONE, 3, keeps=True),
    Row("F10 504", "timeout:x3", DONE, 4, keeps=True),
    Row("F10 529", "overloaded", BUSY, 4, "overloaded"),
    Row("F10 no answer", "close", ("failed", "", "unreachable"), 4, "cannot be reached"),
    Row("F10 no answer once", "close:x1", DONE, 2, keeps=True),
    Row("F11", "error_first", BUSY, 4, "overloaded"),
    Row("F11 once", "error_first:x1", DONE, 2, keeps=True),
    Row("F12", "error_after:30", BUSY, 1, "overloaded", keeps=True),
    Row("F12 500", "api_error_after:30", DOWN, 1, "The API failed", keeps=True),
    Row("F14 cut", "cut_after:30", CUT, 1, "was cut", keeps=True),
    Row("F14 nothing shown", "cut_after:0", CUT, 4, "was cut"),
    Row("F14 nothing shown once", "cut_after:0:x1", DONE, 2, keeps=True),
    Row("F14 in its thinking", "cut_after:3", CUT, 1, "was cut"),
    Row("F14 reset", "reset_after:30", CUT, 1, "was cut", keeps=True),
    Row("F14 clean end", "end_after:30", CUT, 1, "mid-answer", keeps=True),
    Row("F14 before its stop", "end_before_stop", CUT, 1, keeps=True),
    Row("F15", "hang", LATE, 4, "in time"),
    Row("F15 once", "hang:x1", DONE, 2, keeps=True),
    Row("F15 late", "slow:30", LATE, 4, "in time"),
    Row("F15 in time", "slow:0.1", DONE, 1, keeps=True),
    Row("F16 silence", "hang_after:30", LATE, 1, "in time", keeps=True),
    Row("F16 pings", "pings:30", LATE, 1, "in time", keeps=True),
    Row("F16 before any text", "hang_after:0", LATE, 4, "in time"),
    Row("F18", "after_stop", DONE, 1, keeps=True),
    Row("F18 twice", "duplicate_stop", DONE, 1, keeps=True),
    Row("F19", "max_tokens", ("done", "max_tokens", ""), 1, "Cut at the length limit", keeps=True),
    Row("F19 window", "window", ("done", "context", ""), 1, "context is full", keeps=True),
    Row("F20 text", "max_tokens_tool", ("done", "max_tokens", ""), 1, "I write", keeps=True),
    Row("F20", "max_tokens_tool:bare", ("done", "max_tokens", ""), 2, "Cut at the length"),
    Row("F20 once", "max_tokens_tool:bare:x1", DONE, 2, keeps=True),
    Row("F21 JSON", "bad_json_tool", ("done", "loop_limit", "wrong_calls"), 3, WRONG_CALLS),
    Row("F21 unknown", "unknown_tool", ("done", "loop_limit", "wrong_calls"), 3, WRONG_CALLS),
    Row("F21 schema", "wrong_input_tool", ("done", "loop_limit", "wrong_calls"), 3, WRONG_CALLS),
    Row("F21 schema twice", "wrong_input_tool:x2", DONE, 3, keeps=True),
    Row("F21 50 tools", "many_tools:50:x1", DONE, 2, keeps=True),
    Row("F21 unasked", "tool_without_stop", DONE, 1, "The answer is empty", is_empty=True),
    Row("F21 no tool", "stop_without_tool", ("done", "truncated", ""), 1, "unexpectedly",
        keeps=True),
    Row("F21 same ids", "same_tool_ids:x1", DONE, 2, keeps=True),
    Row("F22", "pause_turn:empty:x3", DONE, 4, keeps=True),
    Row("F22 for ever", "pause_turn:empty", ("done", "pause_turn", ""), 6, "Paused by the model"),
    Row("F22 text", "pause_turn", ("done", "pause_turn", ""), 1, "still at it", keeps=True),
    Row("F23", "refusal", ("done", "refusal", ""), 1, f"cyber. {LEFT_OUT}"),
    Row("F23 null", "refusal_null", ("done", "refusal", ""), 1, LEFT_OUT),
    Row("F23 after text", "refusal_partial", ("done", "refusal", ""), 1, LEFT_OUT, keeps=True),
    Row("F25 start twice", "duplicate_start", ODD, 4),
    Row("F25 start twice once", "duplicate_start:x1", DONE, 2, keeps=True),
    Row("F25 block stop twice", "duplicate_block_stop", ODD, 1),
    Row("F25 event", "unknown_event", DONE, 1, keeps=True),
    Row("F25 delta", "unknown_delta", DONE, 1, keeps=True),
    Row("F25 block", "unknown_block", DONE, 1, keeps=True),
    Row("F25 index", "index_skip", ODD, 4),
    Row("F25 no start", "no_start", ODD, 4),
    Row("F25 no delta", "no_delta", ODD, 1, keeps=True),
    Row("F25 bad SSE", "bad_sse", ODD, 1, keeps=True),
    Row("F25 stop reason", "unknown_stop", ("done", "truncated", ""), 1, keeps=True),
    Row("F25 empty", "empty", DONE, 1, "The answer is empty", is_empty=True),
    Row("F25 blank", "blank", DONE, 1, "The answer is empty", is_empty=True),
    Row("F25 redacted", "redacted", DONE, 1, keeps=True),
    Row("F25 NUL", "nul", DONE, 1, "A NUL \ufffd and", keeps=True),
    Row("F26 page", "html200", ODD, 1, "no answer"),
    Row("F27 rounds", "loop", ("done", "loop_limit", "turn_rounds"), 5, "limit of model calls",
        settings={"MAX_ROUNDS": 5}),
    Row("F27 tools", "loop", ("done", "loop_limit", "turn_tools"), 4, "limit of tool calls",
        settings={"MAX_TOOL_CALLS": 3}),
]  # fmt: skip
