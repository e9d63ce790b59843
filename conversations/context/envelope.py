"""Everything of a request but its messages, as wire text.

Kept apart because it rarely changes: it is stored once under its digest, and a body is the envelope
with the view's messages put in. `binding` names what the API signs thinking over besides the
messages: the model, the system prompt and the tools. Caching is asked for at the top level, so no
stored block ever carries a mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from conversations.context import wire
from conversations.context.estimate import text_tokens


@dataclass(frozen=True, slots=True)
class Envelope:
    """`parameters` in order; `overhead` estimates the tokens of system prompt and tools."""

    parameters: tuple[tuple[str, Any], ...]
    binding: str
    overhead: int

    @property
    def text(self) -> str:
        return wire.encode(dict(self.parameters))

    @property
    def max_tokens(self) -> int:
        return int(dict(self.parameters)["max_tokens"])

    def limited(self, max_tokens: int) -> Envelope:
        """Give the same envelope with a lower limit for the answer."""
        return replace(
            self,
            parameters=tuple(
                (name, max_tokens if name == "max_tokens" else value)
                for name, value in self.parameters
            ),
        )


def envelope(
    *,
    model: str,
    max_tokens: int,
    system: str,
    tools: Sequence[dict[str, Any]] = (),
    thinking: dict[str, Any] | None = None,
) -> Envelope:
    """Make the envelope of a streamed call."""
    optional = {"system": system, "tools": list(tools), "thinking": thinking}
    parameters: dict[str, Any] = {"model": model, "max_tokens": max_tokens, "stream": True}
    parameters |= {name: value for name, value in optional.items() if value}
    parameters["cache_control"] = {"type": "ephemeral"}
    prefix = wire.encode([model, system, list(tools)])
    return Envelope(tuple(parameters.items()), wire.digest(prefix), text_tokens(prefix))


def body(envelope_text: str, messages: str) -> str:
    """Join an envelope and a messages array to the text of a request."""
    return envelope_text[:-1] + ',"messages":' + messages + "}"
