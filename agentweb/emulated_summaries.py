"""The emulator's summary scene asked in this process: a stand-in for the lab's model."""

from __future__ import annotations

from agentweb.emulator.errors import ApiError
from agentweb.emulator.scenes.scene import Text
from agentweb.emulator.scenes.summary import summarise
from agentweb.emulator.scenes.view import Request


def emulated(system: str, text: str, max_tokens: int) -> tuple[str, str] | None:
    """Give what the emulator answers to a summary call, and why it stopped; None on an error."""
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    request = Request(model="", system=system, tools=(), messages=(message,), max_tokens=max_tokens)
    try:
        reply = summarise(request)
    except ApiError:
        return None
    if reply is None:
        return None
    said = [block.text for block in reply.blocks if isinstance(block, Text)]
    return "\n".join(said), reply.effective_stop
