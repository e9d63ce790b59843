"""Wire text: the JSON that goes to the API, encoded once and never again.

Everything stored is text in the form it is sent. `encode` is the only encoder; an array is split
into slices of its own text (`split`) and joined from them (`join`), so a stored number, escape or
key order is never rewritten. NUL is safe here because JSON escapes it; lone surrogates cannot be
encoded and are replaced on input (`clean`, and `clean_escapes` where they are written as escapes).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any

from conversations.context.errors import WireError

_SURROGATE = re.compile("[\ud800-\udfff]")
#: A surrogate pair's two escapes, or one escape; the group is set for a lone surrogate alone.
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\(?:(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
_SPACE = re.compile(r"[ \t\n\r]*")
_decoder = json.JSONDecoder()


def clean(text: str) -> str:
    """Replace lone surrogates, which no encoding can represent, by U+FFFD."""
    # Nearly no text has one, and encoding it says so in a fraction of the time of a search.
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("�", text)
    return text


def clean_escapes(text: str) -> str:
    """Replace the escape of each lone surrogate in JSON text by that of U+FFFD.

    The API refuses a body that has one. Every other byte of the text stays.
    """
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _ESCAPE.sub(lambda found: "\\ufffd" if found[1] else found[0], text)


def encode(value: object) -> str:
    """Encode compactly, keys in the given order; raises WireError for NaN and infinities."""
    try:
        return clean(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise WireError(f"not JSON: {error}") from error


def decode(text: str) -> Any:
    """Decode strictly: no NaN, no infinities, bounded depth and digits. Raises WireError.

    The escape of a lone surrogate is read as U+FFFD, so what is decoded can be shown and encoded.
    """
    try:
        return _strict.decode(clean_escapes(text))
    except (ValueError, RecursionError) as error:
        raise WireError(f"not JSON: {error}") from error


def split(array: str) -> list[str]:
    """Return the elements of a JSON array as slices of its own text; raises WireError."""
    at = _skip(array, 0)
    if array[at : at + 1] != "[":
        raise WireError("not a JSON array")
    at = _skip(array, at + 1)
    slices: list[str] = []
    if array[at : at + 1] == "]":
        _end(array, at)
        return slices
    while True:
        end = _value_end(array, at)
        slices.append(array[at:end])
        at = _skip(array, end)
        mark = array[at : at + 1]
        if mark == "]":
            _end(array, at)
            return slices
        if mark != ",":
            raise WireError(f"expected , or ] at {at}")
        at = _skip(array, at + 1)


def join(elements: Iterable[str]) -> str:
    """Join slices as one array; the inverse of `split` on compact text."""
    return "[" + ",".join(elements) + "]"


def list_objects(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list; [] for anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def digest(text: str) -> str:
    """Return the digest of a text: `sha256:` and 64 hex digits of its UTF-8."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _value_end(text: str, at: int) -> int:
    try:
        return _decoder.raw_decode(text, at)[1]
    except (ValueError, RecursionError) as error:
        raise WireError(f"not JSON: {error}") from error


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _end(text: str, at: int) -> None:
    if _skip(text, at + 1) != len(text):
        raise WireError("text after the JSON array")


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{digits} is out of range")
    return value


#: Built once: building a decoder takes longer than reading a short text with it.
_strict = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
