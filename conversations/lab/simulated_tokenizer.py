"""The simulated API's token counter, deliberately another one than the engine's estimate.

If it were the same, the engine would know every count before it is billed. By default the API
counts by `count_words`: pieces of words, digits and marks, fitted to the token counts that `ctok`
1.3.0, an independent reconstruction of the API's tokenizer, gives for 3,547 texts of recorded
sessions (its sum is 2 % lower, 90 % of the texts are within 20 %; the engine's estimate, which is
of character classes, is 3 % higher there). If `ctok` itself is installed, it can be used instead.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from conversations.context.tokens.estimate import FRAME, estimate_block, estimate_text
from conversations.context.view import wire

Count = Callable[[dict[str, Any]], int]
#: The package with the reconstructed tokenizer, the version of the API's models that it counts
#: for, and the tokens that it adds around each text.
RECONSTRUCTED, _VERSION, _FRAME = "ctok", "4.8", 6
#: Kinds of pieces; of a word every five characters more, of digits each one counts on.
_PIECE = re.compile(
    r"(?P<word>[A-Z]+(?![a-z])|[A-Z]?[a-z]+)|(?P<space>\s\s+|\n)|(?P<digits>\d+)|(?P<mark>[^\w\s]|_)"
    "|(?P<wide>[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])|(?P<other>[^\\W\\d_]+)"
)
#: Hundredths of a token: of a piece, and of each further unit of it.
_WEIGHTS = {"word": 106, "space": 148, "digits": 0, "mark": 96, "wide": 92, "other": 0}
_FIVE, _CAPITAL, _DIGIT, _LETTER = 128, 37, 48, 60
#: Fields that are no text, and their approximate share of a token in hundredths.
_SEALED, _SEALED_WEIGHT = frozenset({"signature", "data", "encrypted_content"}), 30


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """Counters for a block, a tool and a text, and constants per message, request and tool list."""

    block: Count
    tool: Count
    message: int = FRAME
    request: int = 0
    tools: int = 0
    text: Callable[[str], int] = estimate_text


def scale_estimate(percent: int = 100) -> Tokenizer:
    """Return a tokenizer that counts so many percent of the engine's estimate."""

    def block(value: dict[str, Any]) -> int:
        return -(-estimate_block(value) * percent // 100)

    def text(value: str) -> int:
        return -(-estimate_text(value) * percent // 100)

    return Tokenizer(block, lambda value: text(wire.encode(value)), text=text)


def build_tokenizer(count: Callable[[str], int] | None = None, percent: int = 100) -> Tokenizer:
    """Return a tokenizer that counts texts by a function, `count_words` by default.

    Blocks that are no text (images, documents) count as the engine expects; counts of texts are
    remembered, so a tokenizer is best shared by all replays.
    """
    remembered = cache(count or count_words)

    def text(value: str) -> int:
        return -(-remembered(value) * percent // 100)

    def block(value: dict[str, Any]) -> int:
        if value.get("type") in ("image", "document"):
            return -(-estimate_block(value) * percent // 100)
        return FRAME + sum(_count_parts(value, text, block))

    return Tokenizer(block, lambda value: text(wire.encode(value)), text=text)


def _count_parts(value: dict[str, Any], text: Callable[[str], int], block: Count) -> list[int]:
    """Count the fields of a block: texts, values as JSON, and blocks within it."""
    found = []
    for name, item in value.items():
        if name in _SEALED:
            found.append(len(str(item)) * _SEALED_WEIGHT // 100)
        elif name in ("type", "cache_control"):
            continue
        elif isinstance(item, list) and all(map(_is_block, item)):
            found += map(block, item)
        else:
            found.append(text(item if isinstance(item, str) else wire.encode(item)))
    return found


def _is_block(value: object) -> bool:
    return isinstance(value, dict) and "type" in value


def count_words(text: str) -> int:
    """Count the tokens of a text by its words, digits and marks; 0 only for the empty text."""
    total = 0
    for piece in _PIECE.finditer(text):
        name, length = str(piece.lastgroup), piece.end() - piece.start()
        total += _WEIGHTS[name]
        if name == "word":
            total += length // 5 * _FIVE + length * _CAPITAL * piece[0].isupper()
        elif name == "digits":
            total += length * _DIGIT
        elif name == "other":
            total += length * _LETTER
    return max(total // 100, int(bool(text)))


def find_reconstructed() -> Callable[[str], int] | None:
    """Return the counter of the reconstructed tokenizer; None if it is not installed."""
    if importlib.util.find_spec(RECONSTRUCTED) is None:
        return None
    package: Any = importlib.import_module(RECONSTRUCTED)
    return lambda text: int(package.token_count(text, _VERSION)) - _FRAME if text else 0
