"""The parameters of a request besides its messages: system prompt, tools, numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from conversations.context.errors import WireError
from conversations.context.view import wire
from conversations.models import Envelope


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    description: str
    schema: str


@dataclass(frozen=True, slots=True)
class Parameters:
    """`rest` has all other parameters and the headers, as names and texts."""

    system: str
    tools: tuple[Tool, ...]
    rest: tuple[tuple[str, str], ...]


def parse_parameters(envelope: Envelope) -> Parameters:
    """Parse an envelope; raises one of DAMAGE."""
    values = wire.decode(envelope.text)
    headers = wire.decode(envelope.headers)
    if not isinstance(values, dict) or not isinstance(headers, dict):
        raise WireError("an envelope is an object")
    rest = {name: value for name, value in values.items() if name not in ("system", "tools")}
    return Parameters(
        _parse_system(values.get("system", "")),
        tuple(_parse_tool(tool) for tool in values.get("tools", ())),
        tuple((name, _format_value(value)) for name, value in (rest | headers).items()),
    )


def _parse_system(value: Any) -> str:
    if isinstance(value, list):
        return "\n\n".join(str(block.get("text", "")) for block in value)
    return str(value)


def _parse_tool(value: dict[str, Any]) -> Tool:
    schema = {name: value[name] for name in value if name not in ("name", "description")}
    description = str(value.get("description", ""))
    return Tool(str(value.get("name", value.get("type", ""))), description, _format_value(schema))


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
