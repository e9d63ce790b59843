"""How a turn ends: by the model's stop reason, by a failure or by a stop.

A refused exchange must not be sent again, or every later answer would be refused as well. It stays
in the log for people; a recorded transformation removes it from the view, like any other reduction.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from conversations.agent.ports import Finish
from conversations.context.policy.policy import Policy
from conversations.context.steps.removed_lists import write_left_out
from conversations.context.translation import gettext_noop, mark_recorded, write_count
from conversations.context.view import edits
from conversations.context.view.edits import SpliceBlocks, SpliceMessages, Transformation, Trigger
from conversations.context.view.view import View

LEFT_OUT = mark_recorded(
    gettext_noop("This exchange is kept here but not sent to the model again.")
)
WRONG_CALLS = mark_recorded(
    gettext_noop(
        "The model kept calling tools that do not exist or with input they cannot take, so the turn"
        " was ended. Say what it should do instead, or try another model."
    )
)
INTERRUPTED = mark_recorded(gettext_noop("The server stopped during this answer."))
POISON = mark_recorded(
    gettext_noop("The server stopped each time it worked on this turn, so it was given up.")
)
NO_DATABASE = mark_recorded(gettext_noop("The database could not be reached during this answer."))
INTERNAL = mark_recorded(gettext_noop("Something went wrong on the server; it was logged."))
_ONE_MESSAGE = mark_recorded(
    gettext_noop("Left out the exchange that the model refused (%(count)s message)")
)
_MESSAGES = mark_recorded(
    gettext_noop("Left out the exchange that the model refused (%(count)s messages)")
)
_LATE = mark_recorded(gettext_noop("This turn reached its time limit."))
_STOPPED = mark_recorded(gettext_noop("The server stopped this turn."))

#: Finish reasons by error code; other failures have none.
_REASONS = {
    "budget": "budget",
    "rate_limit": "budget",
    "turn_money": "loop_limit",
    "context_full": "context",
    "overflow": "context",
}


def finish_answer(stop_reason: str) -> Finish:
    match stop_reason:
        case "end_turn" | "stop_sequence" | "max_tokens" | "refusal" | "pause_turn":
            return Finish("done", stop_reason)
        case "model_context_window_exceeded":
            return Finish("done", "context")
        case _:
            return Finish("done", "truncated")


def finish_refusal(words: str) -> Finish:
    """Finish a turn that the model refused to answer, with its explanation if there is one."""
    return Finish("done", "refusal", "", f"{words} {LEFT_OUT}".strip())


def finish_at_limit(code: Literal["turn_rounds", "turn_tools"]) -> Finish:
    """Finish a turn that has reached its cap on model calls or on tool calls."""
    return Finish("done", "loop_limit", code)


def finish_wrong_calls() -> Finish:
    return Finish("done", "loop_limit", "wrong_calls", WRONG_CALLS)


def build_refusal_trim(view: View, first: int, policy: Policy) -> Transformation:
    """Build the change that removes the last exchange, which began with message `first`.

    What was done in it stays on record in the place of its prompt.
    """
    messages = [message for message in view.messages if message.seq >= first]
    start, last = messages[0], messages[-1].seq
    note = write_count(_ONE_MESSAGE, _MESSAGES, len(messages))
    build = partial(
        edits.build_transformation, view, "trim", Trigger(len(messages), 0, "counted"), note=note
    )
    if record := write_left_out(view, messages, policy):
        put = SpliceBlocks(start.seq, 0, len(start.blocks), (record,))
        change = build((put, SpliceMessages(start.seq + 1, last)))
        # A trim never makes the request larger.
        if change.bytes_after < change.bytes_before:
            return change
    return build((SpliceMessages(start.seq, last),))


def finish_failure(code: str, text: str) -> Finish:
    return Finish("failed", _REASONS.get(code, ""), code, text)


def finish_stop(reason: str) -> Finish:
    match reason:
        case "user":
            return Finish("cancelled", "stopped")
        case "left":
            return Finish("running", reason)
        case "time":
            return Finish("failed", "loop_limit", "turn_time", _LATE)
        case _:
            return Finish("interrupted", reason, "interrupted", _STOPPED)


def can_continue(state: str, reason: str, *, has_answer: bool) -> bool:
    """Return whether the answer stopped before its natural end, so that it can be continued."""
    is_cut = reason in ("max_tokens", "truncated", "pause_turn", "loop_limit", "context")
    return has_answer and (state in ("failed", "interrupted", "cancelled") or is_cut)
