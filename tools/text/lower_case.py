"""Lower case that keeps every character at its place, for searches that ignore case.

With both sides in this form a literal search is `str.find`: linear in the text, whatever the
pattern, and its offsets are those of the original.
"""

from __future__ import annotations


def lower_text(text: str) -> str:
    """Return the text in lower case, of the same length."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)
