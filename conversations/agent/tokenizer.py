"""Estimate the tokens that an interrupted answer is billed for, by the model's tokenizer family.

An answer without final usage still costs what the model wrote. The estimate is linear over classes
of characters, per family of models, rounded up for each block; a tool call costs its name, its
input so far and a constant. What the model does not write (signatures, results, citations) counts
nothing. Thinking counts as far as it was streamed: only the API knows the rest.

The estimate of a request (`context/tokens/estimate.py`) is another one: it is scaled by the API's
last report, so it needs one family only, estimates words by spaces and reads megabytes at memory
speed.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

#: Tokens of a call besides its name and its input.
CALL_TOKENS = 12
#: The last generation (major, minor) of the older family.
_LAST_OLDER = (4, 6)
_WHITE = frozenset(" \t\n\r\v\f")
_GENERATION = re.compile(r"(\d{1,2})(?:-(\d{1,2}))?(?!\d)")


@dataclass(frozen=True, slots=True)
class Family:
    """Weights in hundredths of a token: for a character of each class, a word and a line."""

    lower: int
    upper: int
    digit: int
    mark: int
    two_bytes: int
    three_bytes: int
    four_bytes: int
    word: int
    line: int

    def count(self, text: str) -> int:
        """Count the tokens of a text: 0 for the empty one, at least 1 otherwise."""
        total = sum(self._weight(char) * number for char, number in Counter(text).items())
        total += len(text.split()) * self.word
        return max(-(-total // 100), min(1, len(text)))

    def _weight(self, char: str) -> int:
        if char >= "\x80":
            size = len(char.encode(errors="surrogatepass"))
            return (self.two_bytes, self.three_bytes, self.four_bytes)[size - 2]
        if char in _WHITE:
            return self.line if char == "\n" else 0
        if char.isdigit():
            return self.digit
        if char.isalpha():
            return self.lower if char.islower() else self.upper
        return self.mark


OLDER = Family(26, 128, 54, 73, 59, 101, 320, 0, 8)
NEWER = Family(32, 157, 46, 96, 56, 100, 310, 15, 0)


def find_family(model: str) -> Family:
    """Return the family of a model, by the generation in its name; unknown models are newer."""
    found = _GENERATION.search(model)
    if found is None:
        return NEWER
    return OLDER if (int(found[1]), int(found[2] or 0)) <= _LAST_OLDER else NEWER
