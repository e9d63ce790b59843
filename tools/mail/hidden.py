"""Text of a mail that a person would not see but the model would.

Invisible characters are removed and counted: Unicode's tag characters can spell sentences, and
direction marks display another text than they hold. Text that HTML styles to be invisible stays,
because guessing colours fails both ways; a note says that it is there.
"""

from __future__ import annotations

import re

#: Tag characters, joiners outside words, direction marks, variation selectors and the like.
INVISIBLE_CHARACTERS = re.compile(
    "[\U000e0000-\U000e0fff\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb]"
)
CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f\u0080-\u009f]")
#: Comments other than the conditional comments for a mail program.
COMMENT = re.compile(r"<!--(?!\[if|<!|\s{0,9}-->)")
_END = r"\s*(?=[;\"'!}])"
UNSEEN = re.compile(
    rf"(?:font-size|opacity|max-height)\s*:\s*0*+1?(?:\.0\d*+)?(?:px|pt|em|rem|%)?{_END}"
    r"|(?<![-\w])color\s*:\s*(?:white\b|#f{3}\b|#f{6}\b|transparent\b|rgba?\(\s*255\s*,\s*255\s*,)"
    r"|(?:text-indent|left|top)\s*:\s*-\d{3}|display\s*:\s*none|visibility\s*:\s*hidden"
    r"|mso-hide\s*:\s*all",
    re.IGNORECASE,
)


def strip_invisible(text: str) -> tuple[str, list[str]]:
    """Remove invisible characters; return the text and notes about it."""
    text = CONTROL.sub("\ufffd", text)
    cleaned, count = INVISIBLE_CHARACTERS.subn("", text)
    return cleaned, [f"{count:,} invisible characters were taken out of it."] if count else []


def note_hidden_markup(markup: str) -> list[str]:
    """Return notes about text of a page that a person would not see."""
    notes = []
    if UNSEEN.search(markup):
        notes.append(
            "Parts of its HTML are styled so that a person does not see them (hidden, tiny, or of"
            " the background's colour); what is not left out stands below like the rest."
        )
    if COMMENT.search(markup):
        notes.append("Comments in its HTML were left out.")
    return notes
