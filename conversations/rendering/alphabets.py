"""Styled letters and digits as the Unicode characters for them."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

#: The styles of MathML, by the words in the names of the characters.
STYLES = {
    "bold": "BOLD", "italic": "ITALIC", "bold-italic": "BOLD ITALIC", "script": "SCRIPT",
    "fraktur": "FRAKTUR", "double-struck": "DOUBLE-STRUCK", "sans-serif": "SANS-SERIF",
    "sans-serif-italic": "SANS-SERIF ITALIC", "monospace": "MONOSPACE",
}  # fmt: skip


def style_text(text: str, style: str) -> str:
    words = STYLES.get(style, "")
    return "".join(_style_character(character, words) for character in text) if words else text


@lru_cache(maxsize=512)
def _style_character(character: str, style: str) -> str:
    """Return a character in a style; some are older and have other names."""
    name = unicodedata.name(character, "")
    for word in ("LATIN ", "GREEK ", "LETTER "):
        name = name.replace(word, "")
    older = {"FRAKTUR": "BLACK-LETTER"}.get(style, style)
    for known in (f"MATHEMATICAL {style} {name}", f"{older} {name}"):
        try:
            return unicodedata.lookup(known)
        except KeyError:
            continue
    return {"ITALIC SMALL H": "ℎ"}.get(f"{style} {name}", character)
