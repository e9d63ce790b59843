"""The shapes of tools, and the rules of `tool_choice`."""

from __future__ import annotations

import re
from collections import Counter

from agentweb.emulator import json_codec
from agentweb.emulator.errors import Invalid
from agentweb.emulator.json_codec import Value
from agentweb.emulator.model_catalogue import Model
from agentweb.emulator.validation.builtin_tools import OWN_TOOLS
from agentweb.emulator.validation.grammar import check_grammar
from agentweb.emulator.validation.input_blocks import cache_control
from agentweb.emulator.validation.schema import (
    Check,
    Misfit,
    boolean,
    listing,
    mapping,
    matching,
    nullable,
    one_of,
    record,
    string,
)

#: Accepted types that error messages do not list.
_UNNAMED = frozenset({"advisor_20260301", "mcp_toolset"})
_PROPERTY_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_BAD_SCHEMA = (
    "JSON schema is invalid. It must match JSON Schema draft 2020-12 "
    "(https://json-schema.org/draft/2020-12). "
    "Learn more about tool use at https://docs.claude.com/en/docs/tool-use."
)


def _schema(value: Value) -> None:
    mapping(value)
    if "type" not in value:
        raise Misfit("Field required", "type")
    if value["type"] != "object":
        raise Misfit("Input should be 'object'", "type")
    if any(word in value for word in ("oneOf", "allOf", "anyOf")):
        raise Misfit("input_schema does not support oneOf, allOf, or anyOf at the top level")
    keys = value.get("properties")
    if isinstance(keys, dict) and not all(_PROPERTY_KEY.fullmatch(key) for key in keys):
        raise Misfit("Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'", "properties")
    if not _plausible(value):
        raise Misfit(_BAD_SCHEMA)


def _plausible(schema: Value) -> bool:
    """Check a schema for common mistakes, not against the full meta-schema."""
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, dict):
        return False
    kind = schema.get("type", "object")
    kinds = kind if isinstance(kind, list) else [kind]
    needed = schema.get("required", [])
    properties = schema.get("properties") or {}
    if not isinstance(needed, list) or not all(isinstance(name, str) for name in needed):
        return schema.get("required") is None
    if not all(isinstance(name, str) and name in _TYPES for name in kinds) or len(
        set(needed)
    ) != len(needed):
        return False
    return isinstance(properties, dict) and all(_plausible(inner) for inner in properties.values())


_custom: Check = record(
    {"name": matching("^[a-zA-Z0-9_-]{1,128}$"), "input_schema": _schema},
    {
        "type": nullable(one_of("custom")),
        "description": string,
        "cache_control": cache_control,
        "allowed_callers": listing(string),
        "defer_loading": boolean,
        "eager_input_streaming": nullable(boolean),
        "input_examples": listing(mapping),
        "strict": boolean,
    },
)
_TAGS = ", ".join(f"'{kind}'" for kind in ("custom", *OWN_TOOLS))


def tool(value: Value) -> None:
    kind = value.get("type") if isinstance(value, dict) else None
    tag = "custom" if kind is None else kind
    inner = _custom if tag == "custom" else OWN_TOOLS.get(tag) if isinstance(tag, str) else None
    if inner is None:
        raise Misfit(
            f"Input tag '{kind}' found using 'type' does not match any of the expected "
            f"tags: {_TAGS}"
        )
    try:
        inner(value)
    except Misfit as misfit:
        raise misfit.within(tag) from None


def check_tools(body: json_codec.Object, model: Model) -> None:
    tools = body.get("tools") or []
    _check_types(tools, model)
    for index, tool in enumerate(tools):
        if tool.get("strict") and "input_schema" in tool:
            check_grammar(tool["input_schema"], f"tools.{index}.custom")
    names = Counter(tool["name"] for tool in tools if "name" in tool)
    if any(count > 1 for count in names.values()):
        raise Invalid("tools: Tool names must be unique.")
    if tools and all(tool.get("defer_loading") for tool in tools):
        raise Invalid(
            "tools: All tools have defer_loading: true. At least one tool must be loaded."
        )
    choice = body.get("tool_choice")
    if choice:
        _check_choice(choice, set(names), model)


def _check_types(tools: list[json_codec.Object], model: Model) -> None:
    asked = dict.fromkeys(str(tool.get("type")) for tool in tools)
    lacking = [kind for kind in asked if kind in model.lacks_tools]
    if lacking:
        taken = sorted(set(OWN_TOOLS) - model.lacks_tools - _UNNAMED)
        raise Invalid(
            f"'{model.id}' does not support tool types: {', '.join(lacking)}."
            f" Did you mean one of {', '.join(taken)}?"
        )


def _check_choice(choice: json_codec.Object, names: set[str], model: Model) -> None:
    if not names and choice["type"] != "none":
        raise Invalid("tool_choice may only be specified while providing tools")
    if choice["type"] not in {"any", "tool"}:
        return
    if not model.forced_tools:
        raise Invalid('tool_choice: type "tool" and "any" are not supported for this model.')
    if choice["type"] == "tool" and choice["name"] not in names:
        raise Invalid(f"tool_choice.tool.name: Tool '{choice['name']}' not found in provided tools")
