"""One attempt at one API call: read the stream, show it, and close the call in every case.

An answer counts only when it is complete; then it counts even if a stop or an error arrives while
the stream is being closed. An incomplete answer that was partly shown is kept and marked, and rules
out an automatic retry.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TypeAlias

from conversations.agent import title
from conversations.agent.answer import Answer, StreamError
from conversations.agent.job import Job
from conversations.agent.ports import (
    CallPorts,
    CallStatus,
    Ending,
    Finish,
    Head,
    ModelFailed,
    Ports,
    Purpose,
    Refused,
    ReplyAhead,
    SearchesLimited,
    Sending,
    Sent,
)
from conversations.agent.stop import Stopped
from conversations.context.pipeline import (
    CompactionReply,
    CompactionWanted,
    SummaryReply,
    SummaryWanted,
)
from conversations.context.steps import api_clearing
from conversations.context.steps.summary_call import THINKING_ROOM
from conversations.context.tokens.estimate import estimate_text
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view import wire
from conversations.context.view.envelope import Envelope, join_body
from conversations.context.view.view import Message, View

_CUT = mark_recorded(gettext_noop("The connection to the API ended in mid-answer."))
#: Receives text and thinking as they arrive, to show them; the next are read when it has.
Grow: TypeAlias = Callable[[str, str], Awaitable[None]]


@dataclass(slots=True)
class _Response:
    """What has arrived of the response so far."""

    answer: Answer
    request_id: str = ""


async def attempt_call(
    ports: CallPorts,
    sent: Sent,
    *,
    grow: Grow | None = None,
    answer: Answer | None = None,
    find_end: Callable[[Answer], Finish | None] = lambda _: None,
) -> tuple[Answer, Message | None]:
    """Send the call and return its complete answer and message; raises ModelFailed or Stopped.

    `grow` shows the answer as it arrives; without it the answer is not stored as a message.
    `answer`, still empty, knows the calls in the request. `find_end` says whether the turn ends
    with the complete answer.
    """
    shows = grow is not None
    answer = Answer() if answer is None else answer
    response = _Response(answer)
    try:
        await _read_stream(ports, sent, response, grow)
    except Stopped:
        if not answer.is_complete:
            await ports.calls.close(
                sent, _build_ending(response, sent, "stopped", None, keeps=shows)
            )
            raise
    except (StreamError, ModelFailed) as error:
        if not answer.is_complete:
            failed = _map_failure(error, answer)
            status: CallStatus = "truncated" if answer.usage else "error"
            await ports.calls.close(
                sent, _build_ending(response, sent, status, failed, keeps=shows)
            )
            raise failed from error
    ending = _build_complete_ending(response, sent, keeps=shows)
    return answer, await ports.calls.close(sent, replace(ending, finish=find_end(answer)))


async def request_summary(
    ports: CallPorts, job: Job, wanted: SummaryWanted, ahead: ReplyAhead | None = None
) -> tuple[SummaryReply | None, int | None]:
    """Request a summary; returns None on any failure, and the deterministic steps run instead.

    It fails, too, if the reply `ahead` could not be paid after it.
    """
    if wanted.continued is not None:
        sending = _continue_conversation(job.envelope, wanted, wanted.continued)
    else:
        envelope = job.summary_envelope(wanted.system, wanted.max_tokens)
        sending = _build_sending("summary", envelope, wanted.text)
    sending = replace(sending, ahead=ahead)
    answer, call = await _make_hidden_call(ports, sending)
    return (SummaryReply(answer.text, answer.stop_reason) if answer else None), call


async def request_title(ports: CallPorts, envelope: Envelope, text: str) -> str:
    """Request a title; returns "" on any failure."""
    answer, _ = await _make_hidden_call(ports, _build_sending("title", envelope, text))
    return title.read_title(answer.text, answer.stop_reason) if answer else ""


def _build_sending(purpose: Purpose, envelope: Envelope, text: str) -> Sending:
    """Build a request of one message that is not a view of the log."""
    messages = wire.encode([{"role": "user", "content": [{"type": "text", "text": text}]}])
    return Sending(purpose, envelope, messages, envelope.overhead + estimate_text(text), None, 1)


def _continue_conversation(envelope: Envelope, wanted: SummaryWanted, view: View) -> Sending:
    """Build a request with the envelope of a reply, so that its prefix is in the prompt cache."""
    most = min(envelope.max_tokens, wanted.max_tokens + THINKING_ROOM)
    limited = api_clearing.build_reply_envelope(envelope.with_limit(most), view, None)
    return Sending("summary", limited, view.body, envelope.overhead + view.tokens, None, 1)


async def request_compaction(
    ports: Ports, envelope: Envelope, wanted: CompactionWanted, ahead: ReplyAhead
) -> tuple[CompactionReply | None, int | None]:
    """Request a compaction; returns None on any failure, like `request_summary`."""
    compacting, messages = api_clearing.build_compaction_envelope(envelope), wanted.view.body
    answer, call = await _make_hidden_call(
        ports, Sending("summary", compacting, messages, wanted.tokens, None, 1, ahead=ahead)
    )
    return (CompactionReply(answer.compaction, answer.stop_reason) if answer else None), call


async def _make_hidden_call(ports: CallPorts, sending: Sending) -> tuple[Answer | None, int | None]:
    """Make a call that is not shown; return its answer, and the call's id if one was opened."""
    try:
        sent = await ports.open(sending)
    except SearchesLimited as limited:
        fewer = sending.envelope.with_searches(limited.searches)
        return await _make_hidden_call(ports, replace(sending, envelope=fewer))
    except Refused:
        return None, None
    try:
        answer, _ = await attempt_call(ports, sent)
    except ModelFailed:
        return None, sent.call
    return answer, sent.call


async def request_count(ports: Ports, job: Job, view: View) -> int | None:
    """Count the tokens of the request at the API; None when no count is available."""
    with ports.switch.interruptible():
        reply_envelope = api_clearing.build_reply_envelope(job.envelope, view, None)
        return await ports.model.count(
            join_body(reply_envelope.counting, view.body), reply_envelope.headers
        )


async def _read_stream(
    ports: CallPorts, sent: Sent, response: _Response, grow: Grow | None
) -> None:
    """Feed the answer until it is complete; raises ModelFailed when the stream ends early."""
    answer = response.answer
    with ports.switch.interruptible():
        async with aclosing(ports.model.stream(sent.body, sent.headers)) as stream:
            async for item in stream:
                if isinstance(item, Head):
                    response.request_id = item.request_id
                    continue
                text = thinking = ""
                try:
                    for event in item.events:
                        grown = answer.feed(event)
                        text, thinking = text + grown.text, thinking + grown.thinking
                finally:
                    # What came before an event that breaks the protocol is shown, too.
                    if grow is not None and (text or thinking):
                        await grow(text, thinking)
                if answer.is_complete:
                    return
    raise ModelFailed("cut", _CUT, may_retry=True, may_cost=True)


def _map_failure(error: StreamError | ModelFailed, answer: Answer) -> ModelFailed:
    """Map the error to ModelFailed; once text was shown or results came, it must not be retried.

    Both are stored, and a retry would send the messages without them.
    """
    failed = error
    if isinstance(failed, StreamError):
        failed = ModelFailed("protocol_error", str(failed), may_retry=True, may_cost=True)
    was_shown = bool(answer.text or answer.thinking or answer.has_results)
    return replace(failed, may_retry=failed.may_retry and not was_shown, was_shown=was_shown)


def _build_complete_ending(response: _Response, sent: Sent, *, keeps: bool) -> Ending:
    answer = response.answer
    return Ending(
        "refused" if answer.stop_reason == "refusal" else "complete",
        answer.usage,
        answer.stop_reason,
        answer.blocks if keeps else (),
        answer.tool_uses if keeps else (),
        0 if answer.usage and answer.usage.is_trusted else answer.tokens(sent.model),
        request_id=response.request_id,
    )


def _build_ending(
    response: _Response, sent: Sent, status: CallStatus, failure: ModelFailed | None, *, keeps: bool
) -> Ending:
    answer = response.answer
    return Ending(
        status,
        answer.usage,
        answer.stop_reason,
        # Results were paid for, so they are kept for the next request.
        answer.blocks if keeps and (answer.text.strip() or answer.has_results) else (),
        (),
        answer.tokens(sent.model),
        has_thought=answer.has_thought,
        received_searches=answer.searches,
        added_by_rounds=answer.list_rounds(sent.model),
        failure=failure,
        request_id=response.request_id or (failure.request_id if failure else ""),
    )
