"""How a turn ends, from why the model stopped, what failed or who stopped it."""

from __future__ import annotations

from conversations.ports import Finish

#: Failures that have a reason of their own, besides their code.
_REASONS = {"budget": "budget", "context_full": "context", "overflow": "context"}


def finished(stop_reason: str) -> Finish:
    match stop_reason:
        case "end_turn" | "stop_sequence" | "max_tokens" | "refusal":
            return Finish("done", stop_reason)
        case "model_context_window_exceeded":
            return Finish("done", "context")
        case _:
            return Finish("done", "truncated")


def failed(code: str, text: str) -> Finish:
    return Finish("failed", _REASONS.get(code, ""), code, text)


def stopped(reason: str) -> Finish:
    match reason:
        case "user":
            return Finish("cancelled", "stopped")
        case "time":
            return Finish("failed", "loop_limit", "turn_time", "This turn reached its time limit.")
        case _:
            return Finish("interrupted", reason, "interrupted", "The server stopped this turn.")
