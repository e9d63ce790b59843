"""Hidden characters made visible by their code.

A person must be able to read what they allow, and invisible characters, or characters that reverse
the reading direction, can hide text from people that a program reads.
"""

from __future__ import annotations

import unicodedata

_PLAIN = "\n\t"
#: Invisible although they count as letters, or blank.
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")


def reveal_hidden(text: str) -> str:
    """Return the text with each hidden character as its code in angle brackets."""
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
