"""A Chainlit application as its documentation has it: the SDK's stream, token by token."""

from __future__ import annotations

import os

import anthropic
import chainlit

claude = anthropic.AsyncAnthropic()


@chainlit.on_message
async def answer(message: chainlit.Message) -> None:
    reply = chainlit.Message(content="")
    async with claude.messages.stream(
        model=os.environ["RIVAL_MODEL"],
        max_tokens=16_000,
        messages=[{"role": "user", "content": message.content}],
    ) as stream:
        async for text in stream.text_stream:
            await reply.stream_token(text)
    await reply.send()
