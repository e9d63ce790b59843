"""Texts about files for people, and names of files that are safe to show."""

from __future__ import annotations

import re
import unicodedata

from conversations.context.tokens import media
from conversations.context.tokens.media import MediaError

MOST_NAME = 120
#: What a message takes, for people.
TAKEN = (
    "images (PNG, JPEG, GIF, WebP), PDF, Word, Excel and PowerPoint files, mails (EML), HTML, CSV"
    " and other texts"
)
_ENDINGS = {"image/jpeg": "jpg", "text/plain": "txt"}
#: Control and formatting characters, which are invisible or reverse the direction of a line.
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def explain_media_error(error: MediaError) -> str:
    match error.code:
        case "empty":
            return "The file is empty."
        case "large":
            most = format_megabytes(error.number)
            return f"The file is too big: of this kind at most {most} are taken."
        case "pixels":
            return (
                f"The image has a side of {error.number:,} pixels;"
                f" at most {media.MOST_SIDE:,} are taken."
            )
        case "pages":
            return f"The PDF has {error.number:,} pages; at most {media.MOST_IN_LARGE} are taken."
        case "no_text":
            return "There is no text in the file; what its pictures show is not read."
        case "locked":
            return "The PDF is encrypted; save it without a password first."
        case "broken":
            return "The file begins like an image but its size cannot be read; it may be damaged."
        case _:
            return f"Files of this kind are not taken; {TAKEN} are."


def format_megabytes(size: int) -> str:
    return f"{size / 1_000_000:.1f}".removesuffix(".0") + " MB"


def clean_display_name(name: str, media_type: str) -> str:
    """Return a name that can be shown: no path, no invisible characters, bounded, not empty."""
    last = re.split(r"[/\\]", name)[-1]
    seen = "".join(c for c in last if unicodedata.category(c) not in _UNSEEN)
    clean = " ".join(seen.split()).strip(". ")
    if len(clean) > MOST_NAME:
        stem, dot, ending = clean.rpartition(".")
        keeps = bool(dot) and len(ending) <= 8
        clean = f"{stem[: MOST_NAME - 10]}….{ending}" if keeps else clean[: MOST_NAME - 1] + "…"
    ending = _ENDINGS.get(media_type, media_type.rpartition("/")[2])
    return clean or f"file.{ending or 'txt'}"
