"""Inputs are checked strictly, and refusals teach.

Only the subset of JSON Schema that schema.py writes is known here. A bool is not an integer, 5.0 is
not an integer, a number must be finite, and nothing is coerced: a guess would hide the model's
mistake from the model. All problems of one call are told together, so that one more try can do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tools.framework.clean_text import quote
from tools.framework.errors import InputError

MOST_PROBLEMS = 8
BIGGEST = 2**63 - 1
DEEPEST = 64
ARTICLES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def validated(value: object, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as they are, or say everything that is wrong with them."""
    if not isinstance(value, dict):
        raise _no_object(value)
    found = list(_arguments(value, schema))
    if found:
        shown = "; ".join(found[:MOST_PROBLEMS])
        more = len(found) - MOST_PROBLEMS
        raise InputError(f"{shown}; and {more} more." if more > 0 else f"{shown}.")
    return value


def demand_plain(value: object) -> dict[str, Any]:
    """Return an object of finite numbers that is not too deep, or say that it is none."""
    if not isinstance(value, dict):
        raise _no_object(value)
    if not _plain(value):
        raise InputError(f"Expected finite numbers and at most {DEEPEST} levels inside.")
    return value


def _no_object(value: object) -> InputError:
    return InputError(f"The input must be an object with arguments, not {_kind(value)}.")


def _arguments(value: dict[Any, Any], schema: dict[str, Any]) -> Iterator[str]:
    known = schema["properties"]
    for name in schema["required"]:
        if name not in value:
            yield f"missing argument {name!r}: expected {_expected(known[name])}"
    for name, item in value.items():
        if name in known:
            yield from _problems(item, known[name], name)
        else:
            takes = ", ".join(known) or "no arguments"
            yield f"unknown argument {quote(str(name))}: this tool takes {takes}"


def _problems(value: Any, schema: dict[str, Any], where: str) -> Iterator[str]:
    if "anyOf" in schema:
        if all(any(_problems(value, each, where)) for each in schema["anyOf"]):
            yield f"{where}: expected {_expected(schema)}, got {_kind(value)}"
    elif not _fits(value, schema["type"]):
        yield f"{where}: expected {_expected(schema)}, got {_kind(value)}"
    elif value not in schema.get("enum", [value]):
        yield f"{where}: expected {_expected(schema)}, got {quote(value)}"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _problems(item, schema["items"], f"{where}[{index}]")
    elif isinstance(value, dict):
        yield from _members(value, schema, where)


def _members(value: dict[str, Any], schema: dict[str, Any], where: str) -> Iterator[str]:
    members = schema.get("additionalProperties")
    if members is None and not _plain(value):
        yield f"{where}: expected finite numbers and at most {DEEPEST} levels inside"
    if members is not None:
        for key, item in value.items():
            yield from _problems(item, members, f"{where}[{quote(key)}]")


def _fits(value: object, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return type(value) is int and abs(value) <= BIGGEST
        case "number":
            return _fits(value, "integer") or (isinstance(value, float) and math.isfinite(value))
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case _:
            return value is None


def _plain(value: object) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        inside: list[object] = []
        for each in level:
            if isinstance(each, float) and not math.isfinite(each):
                return False
            match each:
                case dict():
                    inside.extend(each.values())
                case list():
                    inside.extend(each)
        if not inside:
            return True
        level = inside
    return False


def _expected(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_expected(each) for each in schema["anyOf"])
    if "enum" in schema:
        return "one of " + ", ".join(repr(each) for each in schema["enum"])
    return ARTICLES[schema["type"]]


def _kind(value: object) -> str:
    match value:
        case str():
            return f"the string {quote(value)}"
        case bool():
            return "true" if value else "false"
        case int():
            return f"the integer {value}" if abs(value) <= BIGGEST else "an integer beyond 64 bits"
        case float():
            return f"the number {value}"
        case list():
            return "a list"
        case dict():
            return "an object"
        case None:
            return "null"
        case _:
            return f"a {type(value).__name__}"
