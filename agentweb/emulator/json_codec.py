"""JSON: a decoder as strict as the API's, an encoder that writes compact UTF-8."""

from __future__ import annotations

import json
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, TypeAlias

#: Any decoded JSON value; `validation` checks its shape before it is used.
Value: TypeAlias = Any
Object: TypeAlias = dict[str, Any]

_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)


class NotJson(ValueError):
    """The body is not JSON."""


def decode(body: bytes) -> Value:
    try:
        return json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error


def encode(value: Value) -> bytes:
    text = _encoder.encode(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def quote(text: str) -> bytes:
    """Encode one JSON string; lone surrogates stay escaped, as from the API."""
    try:
        return encode_basestring(text).encode()
    except UnicodeEncodeError:
        return encode_basestring_ascii(text).encode()


def _refuse_constant(name: str) -> Value:
    raise ValueError(f"{name} is not JSON")
