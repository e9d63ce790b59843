"""Everything of a request but its messages, as wire text: the parameters, and the beta headers.

Kept apart because it rarely changes: it is stored once under its digest, and a body is the envelope
with the view's messages inserted. `binding` identifies what the API signs thinking over besides the
messages: the model, the system prompt and the tools, without cache breakpoints. The envelope sets
two breakpoints: one at the top level, which the API puts at the end of the request, and one at the
end of tools and system prompt, which can then still be read from the cache when the messages have
changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conversations.context.tokens.estimate import estimate_text
from conversations.context.view import cache_breakpoints, wire
from conversations.context.view.cache_breakpoints import CONTROLS, Lifetime

_OF_THE_ANSWER = frozenset({"max_tokens", "stream"})
#: Step, in tokens, in which an answer's limit is lowered.
STEP = 1_024


@dataclass(frozen=True, slots=True)
class Envelope:
    """`parameters` in order; `overhead` estimates the tokens of system prompt and tools."""

    parameters: tuple[tuple[str, Any], ...]
    binding: str
    overhead: int
    #: The names of beta features, in the order of the header; () sends none.
    betas: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return wire.encode(dict(self.parameters))

    @property
    def headers(self) -> dict[str, str]:
        """The headers sent with the body."""
        return {"anthropic-beta": ",".join(self.betas)} if self.betas else {}

    @property
    def digest(self) -> str:
        return digest_envelope(self.text, wire.encode(self.headers))

    @property
    def counting(self) -> str:
        """The parameters for counting tokens: all but those that concern the answer."""
        return wire.encode({k: v for k, v in self.parameters if k not in _OF_THE_ANSWER})

    @property
    def max_tokens(self) -> int:
        return int(dict(self.parameters)["max_tokens"])

    @property
    def lifetime(self) -> Lifetime:
        """How long the API keeps what it caches of the request."""
        return _find_lifetime(dict(self.parameters))

    @property
    def searches(self) -> int:
        """How often the model may search the web while it answers."""
        return count_searches(dict(self.parameters))

    def fit_window(self, left: int) -> Envelope:
        """Limit the answer to `left` tokens, in steps of STEP, so that few envelopes are stored.

        Older models refuse a request whose input and limit together exceed the window; newer ones
        could not write more, either.
        """
        if self.max_tokens <= left:
            return self
        return self.with_limit(max(STEP, left - left % STEP))

    def with_lifetime(self, lifetime: Lifetime) -> Envelope:
        """Return the same envelope with this lifetime at all of its breakpoints."""
        changed = ((name, _put_lifetime(value, lifetime)) for name, value in self.parameters)
        put = {"cache_control": CONTROLS[lifetime]}
        return replace(self, parameters=tuple((n, put.get(n, value)) for n, value in changed))

    def with_parameter(self, name: str, value: Any) -> Envelope:
        """Return the same envelope with one more parameter."""
        return replace(self, parameters=(*self.parameters, (name, value)))

    def with_betas(self, betas: Sequence[str]) -> Envelope:
        """Return the same envelope with these beta features only."""
        return replace(self, betas=tuple(sorted(betas)))

    def with_searches(self, most: int) -> Envelope:
        """Return the envelope with at most so many web searches; other tools bind otherwise."""
        if self.searches <= most:
            return self
        changed = ((n, _put_uses(v, most) if n == "tools" else v) for n, v in self.parameters)
        binding = wire.digest(f"{self.binding} {most}")
        return replace(self, parameters=tuple(changed), binding=binding)

    def with_limit(self, max_tokens: int) -> Envelope:
        """Return the same envelope with another limit for the answer."""
        return replace(
            self,
            parameters=tuple(
                (name, max_tokens if name == "max_tokens" else value)
                for name, value in self.parameters
            ),
        )


def build_envelope(
    *,
    model: str,
    max_tokens: int,
    system: str,
    tools: Sequence[dict[str, Any]] = (),
    thinking: dict[str, Any] | None = None,
    effort: str = "",
    cached: bool = True,
) -> Envelope:
    """Build the envelope of a streamed call; `cached` asks the API to cache its prefix."""
    optional: dict[str, Any] = {"system": system, "tools": list(tools), "thinking": thinking}
    optional["output_config"] = {"effort": effort} if effort else None
    if cached:
        optional |= _add_breakpoint(system, tools)
    parameters: dict[str, Any] = {"model": model, "max_tokens": max_tokens, "stream": True}
    parameters |= {name: value for name, value in optional.items() if value}
    if cached:
        parameters["cache_control"] = CONTROLS["5m"]
    prefix = wire.encode([model, system, list(tools)])
    return Envelope(tuple(parameters.items()), wire.digest(prefix), estimate_text(prefix))


def _add_breakpoint(system: str, tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Add a breakpoint to the last block before the messages."""
    if system.strip():
        return {"system": [cache_breakpoints.add_breakpoint({"type": "text", "text": system})]}
    return {"tools": [*tools[:-1], *map(cache_breakpoints.add_breakpoint, tools[-1:])]}


def _put_lifetime(value: Any, lifetime: Lifetime) -> Any:
    """Return a list of blocks or tools with this lifetime at its breakpoints; others unchanged."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return value
    return [
        cache_breakpoints.add_breakpoint(item, lifetime) if "cache_control" in item else item
        for item in value
    ]


def read_lifetime(text: str) -> Lifetime:
    """Return the lifetime of the breakpoints of a stored envelope."""
    return _find_lifetime(wire.decode(text))


def _find_lifetime(parameters: Mapping[str, Any]) -> Lifetime:
    return "1h" if parameters.get("cache_control") == CONTROLS["1h"] else "5m"


def count_searches(parameters: Mapping[str, Any]) -> int:
    """Return how often a request lets the API search the web."""
    return sum(
        int(tool.get("max_uses") or 0) for tool in parameters.get("tools") or () if _is_search(tool)
    )


def _is_search(tool: Mapping[str, Any]) -> bool:
    return str(tool.get("type", "")).startswith("web_search_")


def _put_uses(tools: Any, most: int) -> list[dict[str, Any]]:
    """Return the tools with at most so many uses of a web search."""
    return [tool | {"max_uses": most} if _is_search(tool) else tool for tool in tools]


def digest_envelope(text: str, headers: str) -> str:
    """Return the digest of an envelope's text, and of its headers (a JSON object) if any."""
    return wire.digest(text if headers == "{}" else f"{text}\n{headers}")


def join_body(envelope_text: str, messages: str) -> str:
    """Join an envelope and a messages array to the body of a request."""
    return envelope_text[:-1] + ',"messages":' + messages + "}"
