"""The progress of a turn, read from its rows, so that another worker can resume it."""

from __future__ import annotations

from itertools import groupby

from django.db.models import QuerySet

from conversations.agent.answer import ToolUse
from conversations.agent.ports import ToolDone
from conversations.agent.resume import WRONG, OpenRound, TurnProgress
from conversations.context.errors import ContextError
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view import wire
from conversations.context.view.stored_blocks import read_content
from conversations.log.findings import read_decodable
from conversations.models import ApiResult, Message, ToolCall

#: For the model, the result of a call whose stored result cannot be read.
DAMAGED = "The result of this call is damaged in the server's database and cannot be read."
_DAMAGED_CALL = mark_recorded(
    gettext_noop(
        "Message %(number)s is damaged in the database: a call that it asks for cannot be read, so"
        " this answer could not go on."
    )
)


class DamagedCallError(ContextError):
    """The id of a tool call cannot be decoded, so nothing can be stored or said of it."""

    code = "damaged"

    def __init__(self, number: int) -> None:
        super().__init__(_DAMAGED_CALL % {"number": number})


def load_progress(turn_id: int) -> TurnProgress:
    """Return how far a turn has come; empty if no worker has run it yet.

    Raises DamagedCallError where the rows do not say which calls were made.
    """
    messages = list(
        Message.objects.filter(turn_id=turn_id).order_by("seq").values_list("pk", "seq", "kind")
    )
    answers = [pk for pk, _, kind in messages if kind == "answer"]
    results = ApiResult.objects.filter(call__turn_id=turn_id, call__purpose="reply")
    declined = _find_declined(results)
    if not answers:
        return TurnProgress(declined=declined)
    calls = ToolCall.objects.filter(turn_id=turn_id)
    ids = read_decodable(lambda: dict(calls.values_list("tool_use_id", "answer__seq")))
    if "" in ids:
        raise DamagedCallError(ids[""])
    last = calls.filter(answer=messages[-1][0]).select_related("output")
    opened = read_decodable(lambda: list(last))
    before = calls.exclude(pk__in=[call.pk for call in opened])
    closed = read_decodable(lambda: list(before.only("answer", "flaw", "state", "details")))
    return TurnProgress(
        first=messages[0][1],
        rounds=len(answers),
        tool_calls=len(closed),
        wrong=_count_wrong_rounds(closed),
        pauses=results.filter(stop_reason="pause_turn").count(),
        overflows=results.filter(error_type="overflow").count(),
        refusals=results.filter(error_type="invalid_request").count(),
        declined=declined,
        ids=frozenset(ids),
        open=_build_open_round(opened) if opened else None,
    )


def _find_declined(results: QuerySet[ApiResult]) -> int | None:
    """Return the number of the message before the model declined, 0 if there was none."""
    refused = results.filter(status="refused").order_by("call__number")
    numbers = list(refused.values_list("answer__seq", flat=True)[:1])
    return (numbers[0] or 0) if numbers else None


def _count_wrong_rounds(calls: list[ToolCall]) -> int:
    """Count the last consecutive rounds in which no call could be run."""
    count = 0
    for _, some in groupby(calls, lambda call: call.answer_id):
        count = count + 1 if all(map(_is_wrong, some)) else 0
    return count


def _is_wrong(call: ToolCall) -> bool:
    return call.state == "error" and (bool(call.flaw) or call.details.get("code") in WRONG)


def _build_open_round(calls: list[ToolCall]) -> OpenRound:
    results = ApiResult.objects.filter(answer=calls[0].answer_id)
    return OpenRound(
        results.values_list("call", flat=True).get(),
        tuple(ToolUse(row.tool_use_id, row.name, row.input, row.flaw) for row in calls),
        {row.tool_use_id: done for row in calls if (done := build_done(row)) is not None},
        {row.tool_use_id: row.effect for row in calls if row.state == "started"},
    )


def build_done(call: ToolCall) -> ToolDone | None:
    """Return how a call, read decodable, has ended; None if it has not."""
    match call.state:
        case "ok" | "error" | "unknown" | "denied" | "cancelled":
            if call.output is None or read_content(call.output.text) is None:
                return ToolDone(wire.encode(DAMAGED), "error")
            return ToolDone(call.output.text, call.state, call.details, _is_wrong(call))
        case _:
            return None
