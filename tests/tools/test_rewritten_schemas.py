"""A rewritten schema takes the same arguments; the server gets them as it names them."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tools.mcp.rewritten_schemas import restore_arguments, rewrite_schema
from tools.mcp.schemas import find_flaw

TEXT, NUMBER = {"type": "string"}, {"type": "number"}
A, B = {"properties": {"a": TEXT}, "required": ["a"]}, {"properties": {"b": NUMBER}}
CASES: dict[str, dict[str, Any]] = {
    "all": {"allOf": [A, B]},
    "all_and_more": {
        "properties": {"c": TEXT}, "required": ["c"], "allOf": [A, {"type": "object"}],
    },
    "one_of_any": {"anyOf": [A]},
    "any_with_everything": {"properties": {"a": TEXT}, "anyOf": [A, {}]},
    "any_of_one_property": {"anyOf": [A, {"properties": {"a": NUMBER}, "required": ["a"]}]},
    "one_of_one_property": {"oneOf": [A, {"properties": {"a": NUMBER}, "required": ["a"]}]},
    "two_words": {"allOf": [A], "anyOf": [B]},
}  # fmt: skip
REFUSED: dict[str, dict[str, Any]] = {
    "either": {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "optional_one": {"oneOf": [{"properties": {"a": TEXT}}, {"properties": {"a": NUMBER}}]},
    "closed": {"additionalProperties": False, "properties": {"a": {}}, "allOf": [B]},
    "different": {"allOf": [A, {"properties": {"a": NUMBER}}]},
    "not_plain": {"allOf": [A, {"minProperties": 2}]},
    "referred_to": {"allOf": [A], "properties": {"c": {"$ref": "#/allOf/0/properties/a"}}},
    "two_differ": {"anyOf": [
        {"properties": {"a": TEXT, "b": TEXT}}, {"properties": {"a": NUMBER, "b": NUMBER}},
    ]},
    "no_list": {"anyOf": {}},
}  # fmt: skip
NOTHING = object()


@pytest.mark.parametrize("name", CASES)
def test_a_merged_schema_takes_what_the_combination_took(name: str) -> None:
    schema = {"type": "object", **CASES[name]}
    assert find_flaw(schema)
    made = rewrite_schema(schema)
    assert find_flaw(made.schema) == ""
    assert made.changes
    before, after = Draft202012Validator(schema), Draft202012Validator(made.schema)
    for values in product([NOTHING, "x", 7, None], repeat=3):
        given = {key: one for key, one in zip("abc", values, strict=True) if one is not NOTHING}
        assert before.is_valid(given) == after.is_valid(given), given
        assert restore_arguments(given, schema) == given


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_merged_is_left_as_it_is_and_refused(name: str) -> None:
    schema = {"type": "object", **REFUSED[name]}
    assert rewrite_schema(schema).schema == schema
    assert "top level" in find_flaw(rewrite_schema(schema).schema)


def test_names_are_replaced_and_put_back_in_the_arguments() -> None:
    deep = {"type": "object", "properties": {"naïve": TEXT}, "required": ["naïve"]}
    schema = {
        "type": "object",
        "properties": {
            "file path": TEXT, "file_path": TEXT, "file$path": TEXT, "": NUMBER, "x" * 80: TEXT,
            "rows": {"type": "array", "items": deep}, "one": deep, "flag": True,
        },
        "required": ["file path", "rows"],
    }  # fmt: skip
    made = rewrite_schema(schema)
    assert find_flaw(made.schema) == ""
    assert set(made.schema["properties"]) == {
        "file_path_2", "file_path", "file_path_3", "_", "x" * 64, "rows", "one", "flag"
    }  # fmt: skip
    assert made.schema["required"] == ["file_path_2", "rows"]
    assert "The property 'file path' is called 'file_path_2' for the model." in made.changes
    given = {
        "file_path": "1", "file_path_2": "2", "_": 3, "x" * 64: "4", "more": {"a": 1},
        "rows": [{"na_ve": "5"}, 6], "one": {"na_ve": "7"}, "flag": [{"na_ve": 8}],
    }  # fmt: skip
    assert restore_arguments(given, schema) == {
        "file_path": "1", "file path": "2", "": 3, "x" * 80: "4", "more": {"a": 1},
        "rows": [{"naïve": "5"}, 6], "one": {"naïve": "7"}, "flag": [{"na_ve": 8}],
    }  # fmt: skip


@pytest.mark.parametrize(
    "more",
    [
        {"patternProperties": {"^a": {}}},
        {"dependentRequired": {"a b": ["c"]}},
        {"$defs": {"n": {"$ref": "#"}}},
        {"$defs": {"n": {"properties": {"c d": {}}}}},
    ],
)
def test_names_that_something_else_speaks_of_are_refused(more: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"a b": TEXT}, **more}
    assert "property named" in find_flaw(rewrite_schema(schema).schema)


def test_a_schema_that_needs_nothing_stays_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {"anyOf": [TEXT, NUMBER]}}}
    assert rewrite_schema(schema).schema == schema
    assert rewrite_schema(schema).changes == ()
    for odd in ("text", None, [], {}):
        assert rewrite_schema(odd).schema == odd
        assert restore_arguments({"a": 1}, odd) == {"a": 1}
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(60):
        deep = {"type": "object", "properties": {"a b": deep}}
    assert rewrite_schema(deep).schema is deep
    assert "deeper" in find_flaw(deep)
