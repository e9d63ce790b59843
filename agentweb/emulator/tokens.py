"""Token counts by character class: deterministic, fast, within a few percent of the tokenizers.

Each class has a weight in hundredths of a token, per tokenizer generation. Bytes are counted by
deleting a class from the UTF-8 text in C, so a megabyte costs a few milliseconds.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from agentweb.emulator import json_codec
from agentweb.emulator.media import image_size, pdf_pages
from agentweb.emulator.model_catalogue import Tokenizer

_LOWER = b"abcdefghijklmnopqrstuvwxyz"
_UPPER = _LOWER.upper()
_DIGIT = b"0123456789"
_SPACE = b" \t\r\n\x0b\x0c"
_LOW_CONTROL = bytes(range(0x80))
_TAIL = bytes(range(0x80, 0xC0))
_TWO = bytes(range(0xC0, 0xE0))
_THREE = bytes(range(0xE0, 0xF0))

#: Tokens of an empty request; a tool list adds a system prompt of its own.
REQUEST_TOKENS = 7
TOOLS_TOKENS = 290
BLOCK_TOKENS = 3
#: Tokens that the model writes for a call besides its name and input.
CALL_TOKENS = 12
_PDF_PAGE_TOKENS = 2_000
_IMAGE_TOKENS = 1_600


@dataclass(frozen=True, slots=True)
class _Weights:
    lower: int
    upper: int
    digit: int
    mark: int
    two: int
    three: int
    four: int
    word: int
    line: int


_WEIGHTS: dict[Tokenizer, _Weights] = {
    "older": _Weights(26, 128, 54, 73, 59, 101, 320, 0, 8),
    "newer": _Weights(32, 157, 46, 96, 56, 100, 310, 15, 0),
}


def count_text(text: str, tokenizer: Tokenizer) -> int:
    """Return the tokens of a text, rounded up; 0 for an empty one."""
    if not text:
        return 0
    weights = _WEIGHTS[tokenizer]
    data = text.encode("utf-8", "surrogatepass")
    ascii_only = data.translate(None, _TAIL + _TWO + _THREE + bytes(range(0xF0, 0x100)))
    lower = len(ascii_only) - len(rest := ascii_only.translate(None, _LOWER))
    upper = len(rest) - len(rest := rest.translate(None, _UPPER))
    digit = len(rest) - len(rest := rest.translate(None, _DIGIT))
    mark = len(rest.translate(None, _SPACE))
    total = (
        lower * weights.lower + upper * weights.upper + digit * weights.digit + mark * weights.mark
    )
    if len(ascii_only) != len(data):
        total += _count_wide(data, weights)
    if weights.word:
        total += len(text.split()) * weights.word
    if weights.line:
        total += data.count(b"\n") * weights.line
    return max(1, -(-total // 100))


def _count_wide(data: bytes, weights: _Weights) -> int:
    leads = data.translate(None, _LOW_CONTROL + _TAIL)
    two = len(leads) - len(rest := leads.translate(None, _TWO))
    three = len(rest) - len(rest := rest.translate(None, _THREE))
    return two * weights.two + three * weights.three + len(rest) * weights.four


def fit_text(text: str, limit: int, tokenizer: Tokenizer) -> str:
    """Return the longest prefix of at most `limit` tokens, by binary search."""
    if limit <= 0:
        return ""
    if count_text(text, tokenizer) <= limit:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count_text(text[:middle], tokenizer) <= limit:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def count_image(source: json_codec.Object) -> int:
    """Return pixels / 750, as documented; a constant when the size is not in the request."""
    if source.get("type") != "base64":
        return _IMAGE_TOKENS
    try:
        head = base64.b64decode(str(source.get("data", ""))[:524_288] + "===")
    except (ValueError, binascii.Error):
        return _IMAGE_TOKENS
    size = image_size(head)
    if size is None:
        return _IMAGE_TOKENS
    width, height = size
    longest = max(width, height, 1)
    if longest > 1_568:
        width, height = width * 1_568 // longest, height * 1_568 // longest
    return max(1, min(_IMAGE_TOKENS, width * height // 750))


def count_pdf(source: json_codec.Object) -> int:
    data = str(source.get("data", ""))
    try:
        raw = base64.b64decode(data + "===") if source.get("type") == "base64" else b""
    except (ValueError, binascii.Error):
        raw = b""
    return _PDF_PAGE_TOKENS * pdf_pages(raw)
