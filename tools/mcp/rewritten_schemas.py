"""Rewrites input schemas that the API refuses into equivalent ones that it accepts.

Names of properties that the API does not accept are replaced, and restored in the arguments before
the server gets them. A combination (anyOf and the like) at the top level is merged where the merged
object accepts the same arguments; one that cannot be merged stays, and `schemas.py` refuses it with
the reason. The result depends on the schema alone, so only the approved definition is stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from tools.framework.clean_text import quote
from tools.mcp.schemas import DEEPEST, IN_PLACE_MANY, PROPERTY_KEY, REFERENCES

_LONGEST = 64
_OTHER = re.compile(r"[^a-zA-Z0-9_.-]")
#: Keywords that a merged part may have; others could change their meaning when moved.
_PLAIN = frozenset({"type", "properties", "required", "title", "description"})
#: Keywords that refer to properties by name.
_BY_NAME = ("patternProperties", "propertyNames", "dependentRequired", "dependentSchemas",
            "dependencies")  # fmt: skip
_OF_THE_REST = ("additionalProperties", "unevaluatedProperties", "patternProperties")


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A schema for the API, and what was changed, a sentence each."""

    schema: Any
    changes: tuple[str, ...] = ()


def rewrite_schema(schema: Any) -> Rewritten:
    """Return the schema to send, and the list of changes, which may be empty."""
    if not isinstance(schema, dict) or _is_deep(schema):
        return Rewritten(schema)
    made, merged = _merge_all(deepcopy(schema))
    changes = [
        f'What is under "{word}" at the top level was merged into one object.' for word in merged
    ]
    if _is_free(made):
        for name, sent in _rename_all(made):
            changes.append(f"The property {quote(name)} is called {quote(sent)} for the model.")
    return Rewritten(made, tuple(dict.fromkeys(changes)))


def restore_arguments(arguments: dict[str, Any], schema: Any) -> dict[str, Any]:
    """Return the arguments of a call under the property names of `schema`, the server's own."""
    if not isinstance(schema, dict) or _is_deep(schema):
        return arguments
    made, _ = _merge_all(schema)
    found: dict[str, Any] = _restore(arguments, made) if _is_free(made) else arguments
    return found


def _merge_all(schema: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Merge each combination at the top level that can be; return which ones were."""
    merged = []
    for word in IN_PLACE_MANY:
        if word in schema and (made := _merge(schema, word)) is not None:
            schema = made
            merged.append(word)
    return schema, merged


def _merge(schema: dict[str, Any], word: str) -> dict[str, Any] | None:
    """Return the schema with a combination merged into it; None if that is not equivalent."""
    parts = schema[word]
    rest = {key: value for key, value in schema.items() if key != word}
    is_closed = any(rest.get(key, True) is not True for key in _OF_THE_REST)
    if is_closed or not isinstance(parts, list) or not parts or not _is_free(schema):
        return None
    if not all(isinstance(part, dict) and _is_plain(part) for part in parts):
        return None
    if word == "allOf" or len(parts) == 1:
        return _join([rest, *parts])
    one = _unite(parts, word)
    return None if one is None else _join([rest, one])


def _is_plain(part: dict[str, Any]) -> bool:
    return (
        part.keys() <= _PLAIN
        and part.get("type", "object") == "object"
        and isinstance(part.get("properties", {}), dict)
        and isinstance(part.get("required", []), list)
    )


def _join(parts: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Merge schemas that must all hold (allOf); None where two differ on a property."""
    made = {key: value for key, value in parts[0].items() if key not in ("properties", "required")}
    properties: dict[str, Any] = {}
    required: list[Any] = []
    for part in parts:
        if not _is_plain({key: part[key] for key in ("properties", "required") if key in part}):
            return None
        for name, value in part.get("properties", {}).items():
            if properties.setdefault(name, value) != value:
                return None
        required += [name for name in part.get("required", []) if name not in required]
        if part.get("type") == "object":
            made.setdefault("type", "object")
    return made | {"properties": properties} | ({"required": required} if required else {})


def _unite(parts: list[dict[str, Any]], word: str) -> dict[str, Any] | None:
    """Merge alternatives that differ in the schema of at most one property; None otherwise."""
    bare = [{key: part[key] for key in part.keys() & {"properties", "required"}} for part in parts]
    if word == "anyOf" and any(not any(part.values()) for part in bare):
        # One alternative accepts every value.
        return {}
    first = bare[0].get("properties", {})
    names = [name for name in first if any(_read(part, name) != first[name] for part in bare)]
    is_alike = all(
        part.get("properties", {}).keys() == first.keys()
        and sorted(map(str, part.get("required", [])))
        == sorted(map(str, bare[0].get("required", [])))
        for part in bare
    )
    if not is_alike or len(names) != 1:
        return None
    if word == "oneOf" and names[0] not in bare[0].get("required", []):
        # Without the property every alternative would match, but oneOf needs exactly one.
        return None
    found = [_read(part, names[0]) for part in bare]
    return bare[0] | {"properties": first | {names[0]: {word: found}}}


def _read(part: dict[str, Any], name: str) -> Any:
    return part.get("properties", {}).get(name)


def _is_free(schema: dict[str, Any]) -> bool:
    """Return whether no reference points to a part that is merged or renamed."""
    targets = [each[word] for each in _walk(schema) for word in REFERENCES if word in each]
    return all(str(target).startswith(("#/$defs/", "#/definitions/")) for target in targets)


def _walk(value: Any) -> Iterator[dict[str, Any]]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each


def _is_deep(schema: dict[str, Any]) -> bool:
    """Return whether the schema is too deep for the API anyway."""
    level: list[Any] = [schema]
    for _ in range(DEEPEST + 1):
        level = [inner for each in level for inner in _list_inner(each)]
    return bool(level)


def _list_inner(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _choose_names(schema: dict[str, Any]) -> dict[str, str]:
    """Map the names that the API does not accept to the names that the model gets."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or any(word in schema for word in _BY_NAME):
        return {}
    used = {name for name in properties if PROPERTY_KEY.fullmatch(name)}
    found: dict[str, str] = {}
    for name in properties:
        if name in used:
            continue
        plain = _OTHER.sub("_", name)[:_LONGEST] or "_"
        sent, count = plain, 1
        while sent in used:
            count += 1
            sent = f"{plain[: _LONGEST - 4]}_{count}"
        used.add(sent)
        found[name] = sent
    return found


def _rename_all(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Rename the properties in a schema, through properties and items; yield old and new names."""
    names = _choose_names(schema)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for inner in properties.values():
            if isinstance(inner, dict):
                yield from _rename_all(inner)
        schema["properties"] = {names.get(key, key): each for key, each in properties.items()}
    if isinstance(items := schema.get("items"), dict):
        yield from _rename_all(items)
    if names and isinstance(required := schema.get("required"), list):
        schema["required"] = [names.get(name, name) for name in required]
    yield from names.items()


def _restore(value: Any, schema: Any) -> Any:
    if not isinstance(schema, dict):
        return value
    if isinstance(value, list):
        return [_restore(each, schema.get("items")) for each in value]
    if not isinstance(value, dict):
        return value
    own = {sent: name for name, sent in _choose_names(schema).items()}
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    return {
        own.get(key, key): _restore(each, known.get(own.get(key, key)))
        for key, each in value.items()
    }
