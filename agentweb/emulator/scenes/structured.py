"""Forced tools and structured outputs: a tool that must be called, a JSON schema."""

from __future__ import annotations

from agentweb.emulator import json_codec
from agentweb.emulator.scenes.scene import Reply, ToolUse, call, say
from agentweb.emulator.scenes.schema_values import make_value
from agentweb.emulator.scenes.view import Request


def answer_in_form(request: Request) -> Reply | None:
    """Call the tool that must be called, or answer with JSON of the schema; else return None."""
    if request.forced_tool is not None:
        schema = request.forced_tool.get("input_schema") or {}
        made = make_value(schema, request.prompt)
        return call(ToolUse(request.forced_tool["name"], made if isinstance(made, dict) else {}))
    if request.output_schema is not None:
        value = make_value(request.output_schema, request.prompt)
        return say(json_codec.encode(value).decode())
    return None
