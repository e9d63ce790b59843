"""Text as it is: characters that nobody sees are shown by their number.

What a person allows they must have read, and characters that are invisible, that turn the reading
direction or that look like nothing can hide words from them which a program reads.
"""

from __future__ import annotations

import unicodedata

_PLAIN = "\n\t"
#: Invisible although they count as letters, or fill a line with nothing.
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")


def reveal_hidden(text: str) -> str:
    """Return the text with each hidden character as its number in angle brackets."""
    return "".join(f"⟨U+{ord(char):04X}⟩" if _is_hidden(char) else char for char in text)


def _is_hidden(char: str) -> bool:
    if char in _PLAIN:
        return False
    if char in _BLANK or 0xFE00 <= ord(char) <= 0xFE0F or 0xE0100 <= ord(char) <= 0xE01EF:
        return True
    category = unicodedata.category(char)
    return category in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp") or (
        category == "Zs" and char != " "
    )
