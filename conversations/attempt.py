"""One attempt at one call: listen to the stream, show it, and close the call whatever happens.

An answer counts only when it is complete; then it counts even if a stop or an error comes while the
stream is being closed. What was shown of one that is not is kept and marked, and rules out another
attempt by itself.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import dataclass, replace

from conversations.answer import Answer, StreamError
from conversations.context import native, wire
from conversations.context.envelope import Envelope, body
from conversations.context.estimate import text_tokens
from conversations.context.pipeline import CompactionReply, CompactionWanted, SummaryReply
from conversations.context.view import Message, View
from conversations.given import Job
from conversations.ports import CallStatus, Ending, Head, ModelFailed, Ports, Refused, Sending, Sent
from conversations.switch import Stopped


@dataclass(slots=True)
class _Heard:
    """What has come of the response so far."""

    answer: Answer
    request_id: str = ""


async def attempt(
    ports: Ports, sent: Sent, *, shows: bool, taken: AbstractSet[str] = frozenset()
) -> tuple[Answer, Message | None]:
    """Send the call and give its complete answer, stored; raises ModelFailed or Stopped.

    `taken` are the ids of tool calls that stand in the request.
    """
    answer = Answer(taken)
    heard = _Heard(answer)
    try:
        await _listen(ports, sent, heard, shows=shows)
    except Stopped:
        if not answer.is_complete:
            await ports.calls.close(sent, _cut(heard, sent, "stopped", None, keeps=shows))
            raise
    except (StreamError, ModelFailed) as error:
        if not answer.is_complete:
            failed = _failure(error, answer)
            status: CallStatus = "truncated" if answer.usage else "error"
            await ports.calls.close(sent, _cut(heard, sent, status, failed, keeps=shows))
            raise failed from error
    ending = Ending(
        "refused" if answer.stop_reason == "refusal" else "complete",
        answer.usage,
        answer.stop_reason,
        answer.blocks if shows else (),
        answer.tool_uses if shows else (),
        request_id=heard.request_id,
    )
    return answer, await ports.calls.close(sent, ending)


async def ask_for_summary(
    ports: Ports, envelope: Envelope, text: str
) -> tuple[SummaryReply | None, int | None]:
    """Ask the model for a summary; any failure is None and the deterministic steps go on."""
    messages = wire.encode([{"role": "user", "content": [{"type": "text", "text": text}]}])
    estimate = envelope.overhead + text_tokens(text)
    answer, call = await _aside(ports, Sending("summary", envelope, messages, estimate, None, 1))
    return (SummaryReply(answer.text, answer.stop_reason) if answer else None), call


async def ask_for_compaction(
    ports: Ports, envelope: Envelope, wanted: CompactionWanted
) -> tuple[CompactionReply | None, int | None]:
    """Ask the API to compact messages; any failure is None and the deterministic steps go on."""
    asked, messages = native.compacting(envelope), wanted.view.body
    answer, call = await _aside(ports, Sending("summary", asked, messages, wanted.tokens, None, 1))
    return (CompactionReply(answer.compaction, answer.stop_reason) if answer else None), call


async def _aside(ports: Ports, sending: Sending) -> tuple[Answer | None, int | None]:
    """Make a call that nobody sees; give its answer, and the call when there was one."""
    try:
        sent = await ports.calls.open(sending)
    except Refused:
        return None, None
    try:
        answer, _ = await attempt(ports, sent, shows=False)
    except ModelFailed:
        return None, sent.call
    return answer, sent.call


async def ask_for_count(ports: Ports, job: Job, view: View) -> int | None:
    """Ask how many tokens the request has; None when that is not to be had."""
    with ports.switch.interruptible():
        asked = native.asked(job.envelope(view.reduced), view, None)
        return await ports.model.count(body(asked.counting, view.body), asked.headers)


async def _listen(ports: Ports, sent: Sent, heard: _Heard, *, shows: bool) -> None:
    """Feed the answer until it is complete; raises ModelFailed when the stream ends before."""
    answer = heard.answer
    with ports.switch.interruptible():
        async with aclosing(ports.model.stream(sent.body, sent.headers)) as stream:
            async for item in stream:
                if isinstance(item, Head):
                    heard.request_id = item.request_id
                    continue
                grown = answer.feed(item.event)
                if shows and (grown.text or grown.thinking):
                    ports.stage.grow(grown.text, grown.thinking)
                if answer.is_complete:
                    return
    raise ModelFailed("cut", "The connection to the API ended in mid-answer.", may_retry=True)


def _failure(error: StreamError | ModelFailed, answer: Answer) -> ModelFailed:
    """Give the failure; once something was shown there must be no attempt by itself."""
    failed = error
    if isinstance(failed, StreamError):
        failed = ModelFailed("protocol_error", str(failed), may_retry=True)
    was_shown = bool(answer.text or answer.thinking)
    return replace(failed, may_retry=failed.may_retry and not was_shown)


def _cut(
    heard: _Heard, sent: Sent, status: CallStatus, failure: ModelFailed | None, *, keeps: bool
) -> Ending:
    answer = heard.answer
    return Ending(
        status,
        answer.usage,
        answer.stop_reason,
        answer.blocks if keeps and answer.text.strip() else (),
        (),
        answer.tokens(sent.model),
        failure=failure,
        request_id=heard.request_id or (failure.request_id if failure else ""),
    )
