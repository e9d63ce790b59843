"""A short value that fits a JSON schema, made from the user's text; always the same."""

from __future__ import annotations

from agentweb.emulator import json_codec

#: Nesting depth beyond which a value ends as soon as it can.
_DEEPEST = 12
#: A valid string for each format that structured outputs support.
_FORMATS = {
    "date": "2026-11-24",
    "time": "12:00:00Z",
    "date-time": "2026-11-24T12:00:00Z",
    "duration": "P1D",
    "email": "ann@example.org",
    "hostname": "example.org",
    "uri": "https://example.org/",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
}
_LONGEST = 60


def make_value(schema: json_codec.Object, words: str) -> json_codec.Value:
    """Make a value of the schema; its texts are `words`, its numbers those in `words`."""
    return _Maker(schema, " ".join(words.split())[:_LONGEST] or "text").make(schema, 0)


class _Maker:
    def __init__(self, root: json_codec.Object, words: str) -> None:
        self._root, self._words = root, words

    def make(self, schema: json_codec.Value, depth: int) -> json_codec.Value:
        if not isinstance(schema, dict):
            return self._words
        schema = self._resolve(schema)
        for name in ("const", "default"):
            if name in schema:
                return schema[name]
        if choices := schema.get("enum"):
            return choices[0]
        for name in ("anyOf", "oneOf", "allOf"):
            if options := schema.get(name):
                return self._choose(name, options, schema, depth)
        return self._make_type(_read_type(schema), schema, depth)

    def _resolve(self, schema: json_codec.Object) -> json_codec.Object:
        for _ in range(_DEEPEST):
            place = schema.get("$ref")
            if not isinstance(place, str) or not place.startswith("#/"):
                break
            found: json_codec.Value = self._root
            for part in place[2:].split("/"):
                found = found.get(part, {}) if isinstance(found, dict) else {}
            schema = found if isinstance(found, dict) else {}
        return schema

    def _choose(
        self, name: str, options: list[json_codec.Object], schema: json_codec.Object, depth: int
    ) -> json_codec.Value:
        rest = {key: value for key, value in schema.items() if key != name}
        if name == "allOf":
            merged = rest
            for option in options:
                merged = _merge(merged, self._resolve(option))
            return self.make(merged, depth + 1)
        # The last option ends a recursive schema, where one of them does.
        option = options[-1] if depth > _DEEPEST else options[0]
        return self.make(_merge(rest, self._resolve(option)), depth + 1)

    def _make_type(self, kind: str, schema: json_codec.Object, depth: int) -> json_codec.Value:
        match kind:
            case "object":
                return self._make_object(schema, depth)
            case "array":
                least = max(int(schema.get("minItems", 0)), depth <= _DEEPEST)
                return [self.make(schema.get("items", {}), depth + 1) for _ in range(least)]
            case "integer" | "number":
                return _make_number(schema)
            case "boolean":
                return True
            case "null":
                return None
            case _:
                return self._make_text(schema)

    def _make_object(self, schema: json_codec.Object, depth: int) -> json_codec.Object:
        fields = schema.get("properties") or {}
        required = schema.get("required") or []
        wanted = (
            required if depth > _DEEPEST else [*fields, *(n for n in required if n not in fields)]
        )
        return {name: self.make(fields.get(name, {}), depth + 1) for name in wanted}

    def _make_text(self, schema: json_codec.Object) -> str:
        text = _FORMATS.get(str(schema.get("format")), self._words)
        text = text.ljust(int(schema.get("minLength", 0)), ".")
        most = schema.get("maxLength")
        return text[: int(most)] if most is not None else text


def _read_type(schema: json_codec.Object) -> str:
    kind = schema.get("type") or ("object" if "properties" in schema else "string")
    return str(kind[0] if isinstance(kind, list) else kind)


def _make_number(schema: json_codec.Object) -> json_codec.Value:
    least = schema.get(
        "minimum", schema.get("exclusiveMinimum", 0) + ("exclusiveMinimum" in schema)
    )
    value = max(1, least) if schema.get("maximum", 1) >= 1 else schema["maximum"]
    step = schema.get("multipleOf")
    return value if not step else -(-value // step) * step


def _merge(one: json_codec.Object, other: json_codec.Object) -> json_codec.Object:
    both = one | other
    for name in ("properties", "required"):
        if name in one and name in other:
            both[name] = (
                one[name] | other[name] if name == "properties" else [*one[name], *other[name]]
            )
    return both
