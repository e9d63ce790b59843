"""Structured outputs and forced tools: the answer has the requested form."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from agentweb.emulator.scenes.schema_values import make_value
from tests.emulator.samples import TOOL


class Line(BaseModel):
    name: str = Field(max_length=10)
    price: float = Field(gt=3, lt=9)
    count: int = Field(ge=5, multiple_of=4)
    kind: str | None = None


class Order(BaseModel):
    """A class whose generated schema has references, alternatives and formats."""

    lines: list[Line] = Field(min_length=2)
    paid: bool
    when: str = Field(json_schema_extra={"format": "date"})
    parent: Order | None = None


MADE = Order.model_json_schema()
PLAIN = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}},
    "required": ["city", "unit"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("schema", [MADE, PLAIN])
def test_an_answer_is_json_that_fits_the_schema(ask: Any, body: Any, schema: Any) -> None:
    form = {"type": "json_schema", "schema": PLAIN}
    answered = ask(body("The weather in Oslo?", output_config={"format": form}))
    assert answered.status == 200, answered.body
    value = json.loads(answered.json["content"][-1]["text"])
    jsonschema.validate(value, PLAIN)
    assert value["city"] == "The weather in Oslo?"
    jsonschema.validate(make_value(schema, "The weather in Oslo?"), schema)


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "weather"}])
def test_a_forced_tool_is_called_with_an_input_of_its_schema(
    ask: Any, body: Any, choice: Any
) -> None:
    tools = [TOOL | {"name": "weather", "input_schema": PLAIN}, TOOL]
    asked = body("Hello", model="claude-sonnet-4-6", tools=tools, tool_choice=choice)
    answered = ask(asked)
    assert answered.status == 200, answered.body
    [use] = [block for block in answered.json["content"] if block["type"] == "tool_use"]
    assert (use["name"], answered.json["stop_reason"]) == ("weather", "tool_use")
    jsonschema.validate(use["input"], PLAIN)


def test_what_pydantic_makes_of_a_class_is_filled_so_that_it_reads_it_again() -> None:
    Order.model_validate(make_value(MADE, "Two loaves"))


SCALARS = st.sampled_from([
    {"type": "string"}, {"type": "string", "minLength": 80}, {"type": "string", "maxLength": 3},
    {"type": "integer", "minimum": 7}, {"type": "number", "maximum": -2}, {"type": "boolean"},
    {"type": ["null", "string"]}, {"const": 4}, {"enum": ["a", "b"]}, {"type": "null"},
])  # fmt: skip
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items, "minItems": 1}, inner),
        st.builds(lambda options: {"anyOf": options}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(
            lambda fields: {"type": "object", "properties": fields, "required": list(fields)},
            st.dictionaries(st.sampled_from("abc"), inner, min_size=1),
        ),
    ),
    max_leaves=8,
)


@given(SCHEMAS, st.text(max_size=90))
def test_any_schema_gets_a_value_that_fits(schema: Any, words: str) -> None:
    jsonschema.validate(make_value(schema, words), schema)
