"""One attempt at one call: listen to the stream, show it, and close the call whatever happens.

An answer counts only when it is complete. What was shown of one that is not is kept and marked, and
rules out another attempt by itself.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace

from conversations.answer import Answer, StreamError
from conversations.context.estimate import text_tokens
from conversations.context.view import Message
from conversations.ports import Ending, Head, ModelFailed, Ports, Sent
from conversations.switch import Stopped


async def attempt(ports: Ports, sent: Sent, *, shows: bool) -> tuple[Answer, Message | None]:
    """Send the call and give its complete answer, stored; raises ModelFailed or Stopped."""
    answer = Answer()
    head = Head("", 0)
    try:
        with ports.switch.interruptible():
            async with aclosing(ports.model.stream(sent.body)) as stream:
                async for item in stream:
                    if isinstance(item, Head):
                        head = item
                        continue
                    grown = answer.feed(item.event)
                    if shows and (grown.text or grown.thinking):
                        ports.stage.grow(grown.text, grown.thinking)
                    if answer.is_complete:
                        break
        _demand_complete(answer)
    except Stopped:
        await ports.calls.close(sent, _cut(answer, head, "stopped", None, keeps=shows))
        raise
    except (StreamError, ModelFailed) as error:
        failed = error if isinstance(error, ModelFailed) else _broken(error, answer)
        was_shown = bool(answer.text or answer.thinking)
        failed = replace(failed, may_retry=failed.may_retry and not was_shown)
        status = "truncated" if answer.usage else "error"
        await ports.calls.close(sent, _cut(answer, head, status, failed, keeps=shows))
        raise failed from error
    refused = answer.stop_reason == "refusal"
    ending = Ending(
        "refused" if refused else "complete",
        answer.usage,
        answer.stop_reason,
        answer.blocks if shows else (),
        answer.tool_uses if shows else (),
        _received(answer),
        request_id=head.request_id,
    )
    return answer, await ports.calls.close(sent, ending)


def _demand_complete(answer: Answer) -> None:
    if not answer.is_complete:
        raise StreamError("the connection ended before the answer was complete")


def _received(answer: Answer) -> int:
    return text_tokens(answer.text) + text_tokens(answer.thinking)


def _broken(error: StreamError, answer: Answer) -> ModelFailed:
    code = "protocol_error" if answer.usage is None or answer.stop_reason else "cut"
    return ModelFailed(code, str(error), may_retry=True)


def _cut(
    answer: Answer, head: Head, status: str, failure: ModelFailed | None, *, keeps: bool
) -> Ending:
    return Ending(
        "stopped" if status == "stopped" else "truncated" if status == "truncated" else "error",
        answer.usage,
        answer.stop_reason,
        answer.blocks if keeps and answer.text.strip() else (),
        (),
        _received(answer),
        failure=failure,
        request_id=head.request_id or (failure.request_id if failure else ""),
    )
