"""Schemas of structured outputs: the part of JSON Schema that the API can hold an answer to.

That each of these is refused, and with which path, is documented; the words behind the path are
known only of circles, so those of the others are ours.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentweb.emulator import json_codec
from agentweb.emulator.errors import Invalid

_PATH = "output_config.format.schema"
_REFUSED = (
    "oneOf", "not", "prefixItems", "contains", "if", "dependentRequired", "unevaluatedProperties",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "maxItems",
)  # fmt: skip
#: What may stand beside `anyOf`: words for people, and what references name.
_BESIDE = frozenset({"anyOf", "description", "title", "default", "$defs", "definitions"})


def check_output_format(body: json_codec.Object) -> None:
    schema = ((body.get("output_config") or {}).get("format") or {}).get("schema")
    if schema is None:
        return
    for found in _walk(schema):
        _check_schema(found)
    _check_circles(schema, schema, ())


def _walk(schema: json_codec.Value) -> Iterator[json_codec.Object]:
    """Every schema in a schema, itself first."""
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


def _check_schema(schema: json_codec.Object) -> None:
    if not schema:
        raise Invalid(f"{_PATH}: an empty schema is not supported")
    for name in _REFUSED:
        if name in schema:
            raise Invalid(f"{_PATH}: '{name}' is not supported")
    if isinstance(schema.get("items"), list):
        raise Invalid(f"{_PATH}: a list of 'items' is not supported")
    if "anyOf" in schema and set(schema) - _BESIDE:
        raise Invalid(f"{_PATH}: 'anyOf' cannot be combined with other keywords")
    is_object = schema.get("type") == "object" or "properties" in schema
    if is_object and schema.get("additionalProperties") is not False:
        raise Invalid(
            f"{_PATH}: For 'object' type, 'additionalProperties' must be explicitly set to false"
        )


def _check_circles(
    schema: json_codec.Value, root: json_codec.Object, path: tuple[str, ...]
) -> None:
    """A reference that leads back to itself has no answer of a known size."""
    if not isinstance(schema, dict):
        return
    place = schema.get("$ref")
    if isinstance(place, str):
        if place in path:
            raise Invalid(f"{_PATH}: Circular reference detected")
        found: json_codec.Value = root
        for part in place.removeprefix("#").strip("/").split("/") if place != "#" else ():
            found = found.get(part) if isinstance(found, dict) else None
        _check_circles(found, root, (*path, place))
    inner = [*(schema.get("properties") or {}).values(), *(schema.get("anyOf") or ())]
    for one in (*inner, *(schema.get("allOf") or ()), schema.get("items")):
        _check_circles(one, root, path)
