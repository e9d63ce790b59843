"""JSON: a decoder as strict as the API's, an encoder that writes compact UTF-8."""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, TypeAlias

#: Any decoded JSON value; `validation` checks its shape before it is used.
Value: TypeAlias = Any
Object: TypeAlias = dict[str, Any]

#: A surrogate pair's two escapes; a high surrogate alone, and whether another character's escape
#: follows it; a low surrogate alone; any other escape.
_ESCAPE = re.compile(
    r"\\u[dD][89abAB]..\\u[dD][c-fC-F].."
    r"|(?P<high>\\u[dD][89abAB]..)(?P<next>\\u)?|(?P<low>\\u[dD][c-fC-F]..)|\\."
)
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)


class NotJson(ValueError):
    """The body is not JSON."""


def decode(body: bytes) -> Value:
    try:
        return json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error


def decode_request(body: bytes) -> Value:
    """Decode the body of a request, in which the API refuses one half of a surrogate pair.

    Its own answers may hold one, so `decode` reads it.
    """
    value = decode(body)
    text = body.decode(json.detect_encoding(body), "surrogatepass")
    if "\\ud" in text or "\\uD" in text:
        _demand_pairs(text)
    return value


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


def _demand_pairs(text: str) -> None:
    for found in _ESCAPE.finditer(text):
        if found["low"]:
            words, at = "invalid high surrogate in string", found.start()
        elif found["high"]:
            words = "invalid low surrogate" if found["next"] else "no low surrogate"
            words, at = f"{words} in string", found.end("high")
        else:
            continue
        raise NotJson(str(json.JSONDecodeError(words, text, at)))


def _refuse_constant(name: str) -> Value:
    raise ValueError(f"{name} is not JSON")
