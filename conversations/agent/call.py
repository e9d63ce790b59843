"""One attempt at one call: listen to the stream, show it, and close the call whatever happens.

An answer counts only when it is complete; then it counts even if a stop or an error comes while the
stream is being closed. What was shown of one that is not is kept and marked, and rules out another
attempt by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TypeAlias

from conversations.agent import title
from conversations.agent.answer import Answer, StreamError
from conversations.agent.job import Job
from conversations.agent.ports import (
    CallStatus,
    Ending,
    Head,
    Line,
    ModelFailed,
    Ports,
    Purpose,
    Refused,
    Sending,
    Sent,
)
from conversations.agent.stop import Stopped
from conversations.context.pipeline import CompactionReply, CompactionWanted, SummaryReply
from conversations.context.steps import api_clearing
from conversations.context.tokens.estimate import estimate_text
from conversations.context.view import wire
from conversations.context.view.envelope import Envelope, join_body
from conversations.context.view.view import Message, View

#: Takes text and thinking as they come, to show them.
Grow: TypeAlias = Callable[[str, str], None]


@dataclass(slots=True)
class _Response:
    """What has come of the response so far."""

    answer: Answer
    request_id: str = ""


async def attempt_call(
    line: Line, sent: Sent, *, grow: Grow | None = None, taken: AbstractSet[str] = frozenset()
) -> tuple[Answer, Message | None]:
    """Send the call and give its complete answer, stored; raises ModelFailed or Stopped.

    `grow` shows the answer as it comes; one that is shown to nobody is not kept as a message.
    `taken` are the ids of tool calls that stand in the request.
    """
    shows = grow is not None
    answer = Answer(taken)
    heard = _Response(answer)
    try:
        await _read_stream(line, sent, heard, grow)
    except Stopped:
        if not answer.is_complete:
            await line.calls.close(sent, _build_ending(heard, sent, "stopped", None, keeps=shows))
            raise
    except (StreamError, ModelFailed) as error:
        if not answer.is_complete:
            failed = _map_failure(error, answer)
            status: CallStatus = "truncated" if answer.usage else "error"
            await line.calls.close(sent, _build_ending(heard, sent, status, failed, keeps=shows))
            raise failed from error
    ending = Ending(
        "refused" if answer.stop_reason == "refusal" else "complete",
        answer.usage,
        answer.stop_reason,
        answer.blocks if shows else (),
        answer.tool_uses if shows else (),
        0 if answer.usage and answer.usage.is_final else answer.tokens(sent.model),
        request_id=heard.request_id,
    )
    return answer, await line.calls.close(sent, ending)


async def request_summary(
    line: Line, envelope: Envelope, text: str
) -> tuple[SummaryReply | None, int | None]:
    """Ask the model for a summary; any failure is None and the deterministic steps go on."""
    answer, call = await _make_hidden_call(line, _build_sending("summary", envelope, text))
    return (SummaryReply(answer.text, answer.stop_reason) if answer else None), call


async def request_title(line: Line, envelope: Envelope, text: str) -> str:
    """Ask the model for a title; whatever goes wrong, there is none."""
    answer, _ = await _make_hidden_call(line, _build_sending("title", envelope, text))
    return title.read_title(answer.text, answer.stop_reason) if answer else ""


def _build_sending(purpose: Purpose, envelope: Envelope, text: str) -> Sending:
    """Make a request of one message that is no view of the log."""
    messages = wire.encode([{"role": "user", "content": [{"type": "text", "text": text}]}])
    return Sending(purpose, envelope, messages, envelope.overhead + estimate_text(text), None, 1)


async def request_compaction(
    ports: Ports, envelope: Envelope, wanted: CompactionWanted
) -> tuple[CompactionReply | None, int | None]:
    """Ask the API to compact messages; any failure is None and the deterministic steps go on."""
    asked, messages = api_clearing.build_compaction_envelope(envelope), wanted.view.body
    answer, call = await _make_hidden_call(
        ports, Sending("summary", asked, messages, wanted.tokens, None, 1)
    )
    return (CompactionReply(answer.compaction, answer.stop_reason) if answer else None), call


async def _make_hidden_call(line: Line, sending: Sending) -> tuple[Answer | None, int | None]:
    """Make a call that nobody sees; give its answer, and the call when there was one."""
    try:
        sent = await line.calls.open(sending)
    except Refused:
        return None, None
    try:
        answer, _ = await attempt_call(line, sent)
    except ModelFailed:
        return None, sent.call
    return answer, sent.call


async def request_count(ports: Ports, job: Job, view: View) -> int | None:
    """Ask how many tokens the request has; None when that is not to be had."""
    with ports.switch.interruptible():
        asked = api_clearing.build_reply_envelope(job.envelope, view, None)
        return await ports.model.count(join_body(asked.counting, view.body), asked.headers)


async def _read_stream(line: Line, sent: Sent, heard: _Response, grow: Grow | None) -> None:
    """Feed the answer until it is complete; raises ModelFailed when the stream ends before."""
    answer = heard.answer
    with line.switch.interruptible():
        async with aclosing(line.model.stream(sent.body, sent.headers)) as stream:
            async for item in stream:
                if isinstance(item, Head):
                    heard.request_id = item.request_id
                    continue
                for event in item.events:
                    grown = answer.feed(event)
                    if grow is not None and (grown.text or grown.thinking):
                        grow(grown.text, grown.thinking)
                if answer.is_complete:
                    return
    raise ModelFailed("cut", "The connection to the API ended in mid-answer.", may_retry=True)


def _map_failure(error: StreamError | ModelFailed, answer: Answer) -> ModelFailed:
    """Give the failure; once something was shown there must be no attempt by itself."""
    failed = error
    if isinstance(failed, StreamError):
        failed = ModelFailed("protocol_error", str(failed), may_retry=True)
    was_shown = bool(answer.text or answer.thinking)
    return replace(failed, may_retry=failed.may_retry and not was_shown)


def _build_ending(
    heard: _Response, sent: Sent, status: CallStatus, failure: ModelFailed | None, *, keeps: bool
) -> Ending:
    answer = heard.answer
    return Ending(
        status,
        answer.usage,
        answer.stop_reason,
        answer.blocks if keeps and answer.text.strip() else (),
        (),
        answer.tokens(sent.model),
        answer.searches,
        failure=failure,
        request_id=heard.request_id or (failure.request_id if failure else ""),
    )
