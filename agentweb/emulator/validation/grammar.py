"""The part of JSON Schema that the API can hold an answer or a strict tool call to.

The words of each refusal are those that were met live, most of them on 2026-09-27.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentweb.emulator import json_codec
from agentweb.emulator.errors import Invalid

#: Keywords that do not constrain a value: annotations, and definitions for references.
_NOTES = frozenset({"description", "title", "default", "examples", "$defs", "definitions", "$id",
                    "$schema", "$comment"})  # fmt: skip
#: Keywords that structured outputs do not support.
_UNSUPPORTED = frozenset({
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minLength", "maxLength",
    "maxItems", "uniqueItems", "prefixItems", "contains", "minContains", "maxContains",
    "unevaluatedItems",
    "if", "then", "else", "dependentRequired", "dependentSchemas", "unevaluatedProperties",
    "propertyNames", "patternProperties", "minProperties", "maxProperties",
})  # fmt: skip
_CLOSED = "For 'object' type, 'additionalProperties' must be explicitly set to false"
_NO_MAP = (
    "For 'object' type, 'additionalProperties: object' is not supported. Please set "
    "'additionalProperties' to false"
)


def check_grammar(schema: json_codec.Value, path: str) -> None:
    """Refuse a schema that is not supported; `path` is put before the reason."""
    for found in _walk(schema):
        if reason := _find_flaw(found):
            raise Invalid(f"{path}: {reason}")
    _check_circles(schema, schema, (), path)


def _walk(schema: json_codec.Value) -> Iterator[json_codec.Object]:
    """Yield a schema and every schema in it."""
    if not isinstance(schema, dict):
        return
    yield schema
    for name in ("properties", "$defs", "definitions"):
        for inner in (schema.get(name) or {}).values():
            yield from _walk(inner)
    for name in ("anyOf", "allOf"):
        for inner in schema.get(name) or ():
            yield from _walk(inner)
    yield from _walk(schema.get("items"))


def _find_flaw(schema: json_codec.Object) -> str:
    """Return what of one schema is not supported; empty if all is."""
    if not set(schema) - _NOTES:
        return "Empty schema ({}) that accepts any JSON value is not supported."
    if "oneOf" in schema:
        return "Schema type 'oneOf' is not supported"
    if "not" in schema:
        return "Schema keyword 'not' is not supported"
    beside = sorted(set(schema) - _NOTES - {"anyOf", "allOf"})
    if beside and ("anyOf" in schema or "allOf" in schema):
        return f"For 'anyOf', '{', '.join(beside)}' is not supported"
    if isinstance(schema.get("items"), list):
        return (
            "Invalid schema: Array types must be specified with a single object schema for 'items'."
        )
    return _find_keyword(schema) or _find_opening(schema)


def _find_keyword(schema: json_codec.Object) -> str:
    kind = _type_of(schema)
    found = sorted(_UNSUPPORTED & set(schema))
    if len(found) == 1:
        return f"For '{kind}' type, property '{found[0]}' is not supported"
    if found:
        return f"For '{kind}' type, properties {', '.join(found)} are not supported"
    least = schema.get("minItems")
    if kind == "array" and least not in (None, 0, 1):
        return (
            "For 'array' type, 'minItems' values other than 0 or 1 are not supported"
            f" (got: [{least}, ∞])"
        )
    return ""


def _find_opening(schema: json_codec.Object) -> str:
    """Check that an object forbids additional properties."""
    more = schema.get("additionalProperties")
    if _type_of(schema) != "object" or more is False:
        return ""
    return _NO_MAP if isinstance(more, dict) else _CLOSED


def _type_of(schema: json_codec.Object) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), None)
    return str(kind or ("object" if "properties" in schema else ""))


def _check_circles(
    schema: json_codec.Value, root: json_codec.Object, names: tuple[str, ...], path: str
) -> None:
    """Refuse recursive references: the size of their values is not bounded."""
    if not isinstance(schema, dict):
        return
    place = schema.get("$ref")
    if isinstance(place, str):
        name = place.rpartition("/")[2]
        if name in names:
            circle = " -> ".join((*names[names.index(name) :], name))
            raise Invalid(f"{path}: Circular reference detected in schema definitions: {circle}")
        _check_circles(_follow(place, root), root, (*names, name), path)
    inner = [*(schema.get("properties") or {}).values(), *(schema.get("anyOf") or ())]
    for one in (*inner, *(schema.get("allOf") or ()), schema.get("items")):
        _check_circles(one, root, names, path)


def _follow(place: str, root: json_codec.Object) -> json_codec.Value:
    found: json_codec.Value = root
    for part in place.removeprefix("#").strip("/").split("/") if place != "#" else ():
        found = found.get(part) if isinstance(found, dict) else None
    return found
