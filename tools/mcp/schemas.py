"""Which input schemas may go to the model, and what is checked of a call before it is sent.

A schema that the API refuses would fail every call of every conversation that has the tool, so it
is flagged when it is listed. Arguments must be an object of finite numbers and bounded nesting with
no required one missing; the server checks the rest, because evaluating a third party's patterns
could block the process. For the same reason each part of a schema is visited once, whatever refers
to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any
from urllib.parse import unquote

from tools.framework.clean_text import quote
from tools.framework.errors import InputError
from tools.framework.validation import check_finite

DEEPEST = 40
#: Keywords whose schemas apply to the same value.
IN_PLACE_ONE = ("not", "if", "then", "else")
IN_PLACE_MANY = ("allOf", "anyOf", "oneOf")
REFERENCES = ("$ref", "$dynamicRef")
#: Keywords that hold schemas by name, and one schema or a list of them.
NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
NESTED = (*IN_PLACE_ONE, *IN_PLACE_MANY, "items", "prefixItems", "contains", "propertyNames",
          "additionalProperties", "unevaluatedItems", "unevaluatedProperties")  # fmt: skip
PROPERTY_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


def find_flaw(schema: Any) -> str:
    """Return why the API would refuse this input schema, "" if it would not."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return 'The input schema is not of the type "object".'
    if _measure_depth(schema) > DEEPEST:
        return f"The input schema is nested deeper than {DEEPEST} levels."
    if found := [word for word in IN_PLACE_MANY if word in schema]:
        return f'The input schema has "{found[0]}" at its top level, which the model does not take.'
    if (key := _find_bad_key(schema)) is not None:
        return (
            f"The input schema has a property named {quote(key)}; the model takes names of 1 to 64 "
            "letters, digits, dots, hyphens and underscores."
        )
    anchors = _find_anchors(schema)
    for holder in _walk_objects(schema):
        for word in REFERENCES:
            target = holder.get(word)
            if isinstance(target, str) and _resolve_reference(schema, anchors, target) is None:
                return f"The input schema refers to {quote(target)}, which is not within it."
    beside = {id(each): _schemas_in_place(schema, anchors, each) for each in _walk_objects(schema)}
    try:
        TopologicalSorter(beside).prepare()
    except CycleError:
        return "The input schema refers to itself without an end."
    return _find_invalid(schema)


def find_known_flaw(schema: Any) -> str:
    """Return the result of `find_flaw`, from a cache for a schema that was checked before."""
    return _find_flaw_of(json.dumps(schema))


def check_arguments(arguments: object, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as they are; raises InputError if they cannot be sent."""
    found = check_finite(arguments)
    required = schema.get("required")
    missing = [name for name in required or () if isinstance(name, str) and name not in found]
    if missing:
        raise InputError(f"Missing: {', '.join(quote(name) for name in missing[:8])}.")
    return found


@lru_cache(maxsize=1024)
def _find_flaw_of(text: str) -> str:
    return find_flaw(json.loads(text))


def _find_bad_key(schema: dict[str, Any]) -> str | None:
    """Return the first property name that the API refuses; data such as defaults is skipped."""
    pending: list[Any] = [schema]
    while pending:
        each = pending.pop()
        if isinstance(each, list):
            pending += each
        if not isinstance(each, dict):
            continue
        named = [inner for word in NAMED if isinstance(inner := each.get(word), dict)]
        properties = each.get("properties")
        for key in properties if isinstance(properties, dict) else ():
            if not PROPERTY_KEY.fullmatch(key):
                return str(key)
        pending += [value for inner in named for value in inner.values()]
        pending += [each[word] for word in NESTED if word in each]
    return None


def _find_invalid(schema: dict[str, Any]) -> str:
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        where = "/".join(str(part) for part in error.absolute_path)
        return f"The input schema is not valid (JSON Schema 2020-12) at {quote('/' + where)}."
    except (RecursionError, OverflowError):
        return "The input schema has a pattern that cannot be read."
    return ""


def _measure_depth(value: Any) -> int:
    level, depth = [value], 0
    while level and depth <= DEEPEST:
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner.extend(each.values())
            elif isinstance(each, list):
                inner.extend(each)
        level, depth = inner, depth + 1
    return depth


def _walk_objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _walk_objects(each)
    elif isinstance(value, list):
        for each in value:
            yield from _walk_objects(each)


def _resolve_reference(root: Any, anchors: dict[str, Any], target: str) -> Any:
    """Resolve a reference within the document; None for one that is broken or external."""
    if not target.startswith("#"):
        return None
    if target != "#" and not target.startswith("#/"):
        return anchors.get(target[1:])
    at = root
    for part in target.split("/")[1:]:
        step = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(at, dict) and step in at:
            at = at[step]
        elif isinstance(at, list) and step.isdecimal() and len(step) < 9 and int(step) < len(at):
            at = at[int(step)]
        else:
            return None
    return at


def _find_anchors(root: Any) -> dict[str, Any]:
    """Return the anchored schemas by name; the first of each name."""
    found: dict[str, Any] = {}
    for each in _walk_objects(root):
        for word in ("$anchor", "$dynamicAnchor"):
            if isinstance(name := each.get(word), str):
                found.setdefault(name, each)
    return found


def _schemas_in_place(root: Any, anchors: dict[str, Any], schema: dict[str, Any]) -> list[int]:
    """Return the ids of the schemas that apply to the same value as this one."""
    found = [_resolve_reference(root, anchors, schema[word]) for word in REFERENCES
             if isinstance(schema.get(word), str)]  # fmt: skip
    found += [schema.get(word) for word in IN_PLACE_ONE]
    for word in IN_PLACE_MANY:
        inner = schema.get(word)
        found += inner if isinstance(inner, list) else []
    inner = schema.get("dependentSchemas")
    found += inner.values() if isinstance(inner, dict) else []
    return [id(each) for each in found if isinstance(each, dict)]
