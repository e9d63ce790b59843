"""The baseline of a streamed answer: a plain Starlette relay on uvicorn, with the SDK's own helper.

It stores, checks and renders nothing: each delta of `messages.stream` goes to the page as one
server-sent event. uvicorn chooses uvloop, as it does wherever that is installed. (A WebSocket
library for uvicorn is not among the dependencies.)
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator

import anthropic
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

MOST_TOKENS = 16_000


def make_application(model: str) -> Starlette:
    claude = anthropic.AsyncAnthropic()

    async def deltas(prompt: str) -> AsyncIterator[str]:
        request = claude.messages.stream(
            model=model,
            max_tokens=MOST_TOKENS,
            messages=[{"role": "user", "content": prompt}],
        )
        async with request as stream:
            async for text in stream.text_stream:
                yield f"data: {json.dumps(text)}\n\n"

    async def ask(request: Request) -> StreamingResponse:
        prompt = (await request.body()).decode()
        return StreamingResponse(deltas(prompt), media_type="text/event-stream")

    return Starlette(routes=[Route("/ask", ask, methods=["POST"])])


if __name__ == "__main__":
    port = int(sys.argv[1])
    app = make_application(os.environ["RELAY_MODEL"])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="info", access_log=False)
