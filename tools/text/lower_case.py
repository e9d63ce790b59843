"""Lower case that keeps the offset of every character, for searches that ignore case.

With query and text in this form a search is `str.find`: linear in the text, whatever the query, and
its offsets are those of the original.
"""

from __future__ import annotations


def lower_text(text: str) -> str:
    """Return the text in lower case, of the same length."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)
