"""What a turn that ends before its time leaves open is closed: a next message may follow."""

from __future__ import annotations

from django.utils import timezone

from conversations.context import wire
from conversations.context.view import Message as ViewMessage
from conversations.models import ApiCall, Message, ToolCall, Turn
from conversations.services.calls import lose_call
from conversations.services.chain import locked
from conversations.services.drafts import keep_draft
from conversations.services.log import append_message, keep_blob
from conversations.toolruns import CUT_SHORT

NOT_RUN = "Not run: the turn ended before this tool was started."


def tidy(turn: Turn) -> None:
    """Leave a history that can go on: after an error of ours as after a crash."""
    close_lost_calls(turn)
    keep_draft(turn)
    _answer_open_tools(turn)


def close_lost_calls(turn: Turn) -> None:
    """Mark calls in doubt; what they held stays spent."""
    for call in ApiCall.objects.filter(turn=turn, result=None):
        lose_call(call=call, conversation=locked(turn.conversation_id))


def _answer_open_tools(turn: Turn) -> None:
    """Give the last answer's tool calls their results, so that the history stays valid."""
    last = Message.objects.filter(turn=turn).order_by("-seq").first()
    if last is None:
        return
    results = []
    for call in ToolCall.objects.filter(answer=last).select_related("output"):
        text = NOT_RUN if call.state == "planned" else CUT_SHORT
        is_open = call.state in ("planned", "started")
        output = wire.encode(text) if is_open or call.output is None else call.output.text
        if is_open:
            call.state = "cancelled" if call.state == "planned" else "unknown"
            call.output_id, call.ended_at = keep_blob(output), timezone.now()
            call.save()
        head = wire.encode({"type": "tool_result", "tool_use_id": call.tool_use_id})
        is_error = "" if call.state == "ok" else ',"is_error":true'
        results.append(f'{head[:-1]},"content":{output}{is_error}}}')
    if results:
        content = wire.join(results)
        append_message(
            conversation=locked(turn.conversation_id),
            turn_id=turn.pk,
            kind="results",
            content=content,
            estimate=ViewMessage.parse(0, "results", content).tokens,
        )
