"""Strict validation of a call's arguments; errors say how to correct them.

Covers the subset of JSON Schema that schema.py writes. A bool is not an integer, 5.0 is not an
integer, a number must be finite, and nothing is coerced: a guess would hide the model's mistake
from the model. All problems of a call are listed together, so one more attempt is enough.

Written here after trying libraries. With pydantic-core (2.50) the check of a good call takes 0.5 to
1.0 µs instead of 1.2 to 3.4, of a bad one 4 to 5 instead of 2 to 2.5, and the import 9 ms and 2.8
MB; but of this module only 42 lines (`_check_value` to `_is_of_type`) can go for 75 that translate
schemas to its validators and its errors to these sentences: 191 lines instead of 154 and a second
dialect of the schema. jsonschema takes 13 to 40 µs, counts 5.0 as an integer, and writes the full
value into its messages.
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
#: Most characters of a text argument, and of one that may be a whole file or mail: the time a tool
#: takes depends on their length.
MOST_CHARACTERS, MOST_OF_LONG = 4_000, 2_000_000
ARTICLES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def validate_arguments(value: object, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as they are; raises InputError with everything that is wrong."""
    if not isinstance(value, dict):
        raise _not_an_object(value)
    problems = list(_find_problems(value, schema))
    if problems:
        shown = "; ".join(problems[:MOST_PROBLEMS])
        more = len(problems) - MOST_PROBLEMS
        raise InputError(f"{shown}; and {more} more." if more > 0 else f"{shown}.")
    return value


def check_finite(value: object) -> dict[str, Any]:
    """Return an object of finite numbers and bounded depth as it is; raises InputError."""
    if not isinstance(value, dict):
        raise _not_an_object(value)
    if not _is_finite(value):
        raise InputError(f"Expected finite numbers and at most {DEEPEST} levels inside.")
    return value


def check_lengths(arguments: dict[str, Any], long: frozenset[str] | None) -> None:
    """Raise InputError where a text is too long; `long` is as in `Tool.long_arguments`."""
    for name, value in arguments.items():
        most = MOST_OF_LONG if long is None or name in long else MOST_CHARACTERS
        if (count := _find_longest(value)) > most:
            raise InputError(f"{name}: {count:,} characters, and at most {most:,} are taken.")


def _find_longest(value: object) -> int:
    """Return the length of the longest text within a value of bounded depth."""
    match value:
        case str():
            return len(value)
        case list():
            return max(map(_find_longest, value), default=0)
        case dict():
            return max((_find_longest(each) for pair in value.items() for each in pair), default=0)
        case _:
            return 0


def _not_an_object(value: object) -> InputError:
    return InputError(f"The input must be an object with arguments, not {_describe_value(value)}.")


def _find_problems(value: dict[Any, Any], schema: dict[str, Any]) -> Iterator[str]:
    known = schema["properties"]
    for name in schema["required"]:
        if name not in value:
            yield f"missing argument {name!r}: expected {_describe_expected(known[name])}"
    for name, item in value.items():
        if name in known:
            yield from _check_value(item, known[name], name)
        else:
            takes = ", ".join(known) or "no arguments"
            yield f"unknown argument {quote(str(name))}: this tool takes {takes}"


def _check_value(value: Any, schema: dict[str, Any], where: str) -> Iterator[str]:
    if "anyOf" in schema:
        if all(any(_check_value(value, each, where)) for each in schema["anyOf"]):
            yield f"{where}: expected {_describe_expected(schema)}, got {_describe_value(value)}"
    elif not _is_of_type(value, schema["type"]):
        yield f"{where}: expected {_describe_expected(schema)}, got {_describe_value(value)}"
    elif value not in schema.get("enum", [value]):
        yield f"{where}: expected {_describe_expected(schema)}, got {quote(value)}"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _check_value(item, schema["items"], f"{where}[{index}]")
    elif isinstance(value, dict):
        yield from _check_members(value, schema, where)


def _check_members(value: dict[str, Any], schema: dict[str, Any], where: str) -> Iterator[str]:
    members = schema.get("additionalProperties")
    if members is None and not _is_finite(value):
        yield f"{where}: expected finite numbers and at most {DEEPEST} levels inside"
    if members is not None:
        for key, item in value.items():
            yield from _check_value(item, members, f"{where}[{quote(key)}]")


def _is_of_type(value: object, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return type(value) is int and abs(value) <= BIGGEST
        case "number":
            return _is_of_type(value, "integer") or (
                isinstance(value, float) and math.isfinite(value)
            )
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case _:
            return value is None


def _is_finite(value: object) -> bool:
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


def _describe_expected(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_describe_expected(each) for each in schema["anyOf"])
    if "enum" in schema:
        return "one of " + ", ".join(repr(each) for each in schema["enum"])
    return ARTICLES[schema["type"]]


def _describe_value(value: object) -> str:
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
