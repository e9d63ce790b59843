"""The input schema of a signature."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest

from tools.framework.schema import SignatureError, build_input_schema
from tools.framework.tool import ToolContext, tool


async def everything(
    context: object,
    text: Annotated[str, "some words"],
    count: int,
    share: float,
    is_on: bool,
    words: list[str],
    table: dict[str, list[int]],
    free: dict,
    unit: Literal["a", "b"] = "a",
    maybe: int | None = None,
    *,
    last: str = "",
) -> str:
    return ""


def test_a_signature_is_a_closed_schema_in_its_own_order() -> None:
    assert build_input_schema(everything) == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "some words"},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "is_on": {"type": "boolean"},
            "words": {"type": "array", "items": {"type": "string"}},
            "table": {
                "type": "object",
                "additionalProperties": {"type": "array", "items": {"type": "integer"}},
            },
            "free": {"type": "object"},
            "unit": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
            "last": {"type": "string", "default": ""},
        },
        "required": ["text", "count", "share", "is_on", "words", "table", "free"],
        "additionalProperties": False,
    }


def test_a_schema_has_the_same_bytes_each_time() -> None:
    assert json.dumps(build_input_schema(everything)) == json.dumps(build_input_schema(everything))


async def takes_bytes(context: object, data: bytes) -> str:
    return ""


async def takes_numbers(context: object, level: Literal[1, 2]) -> str:
    return ""


async def takes_any(context: object, **rest: str) -> str:
    return ""


async def takes_int_keys(context: object, table: dict[int, str]) -> str:
    return ""


@pytest.mark.parametrize("function", [takes_bytes, takes_numbers, takes_any, takes_int_keys])
def test_a_type_without_a_schema_is_refused_at_once(function: Any) -> None:
    with pytest.raises(SignatureError):
        build_input_schema(function)


def test_the_first_paragraph_is_the_description() -> None:
    @tool(icon="tool", effect="read")
    async def weigh(context: ToolContext) -> str:
        """Weigh a thing
        on two scales.

        What people read, and the model does not.
        """
        return ""

    assert (weigh.name, weigh.description) == ("weigh", "Weigh a thing on two scales.")
    assert (weigh.effect, weigh.results, weigh.timeout) == ("read", "head_tail", 30)


def test_a_tool_without_a_description_is_refused() -> None:
    async def silent(context: ToolContext) -> str:
        return ""

    with pytest.raises(SignatureError, match="silent"):
        tool(icon="tool", effect="read")(silent)


def test_an_action_names_inputs_that_the_tool_has() -> None:
    async def post(context: ToolContext, url: str, body: str) -> str:
        """Post a text."""
        return ""

    made = tool(icon="tool", effect="write", action="posted to {url:host}")(post)
    assert made.action == "posted to {url:host}"
    assert tool(icon="tool", effect="write")(post).action is None
    assert tool(icon="tool", effect="read")(post).action == ""
    with pytest.raises(SignatureError, match="post: its action names no input address, body2"):
        tool(icon="tool", effect="write", action="{address} {body2}")(post)
