"""The words of an IMAP command: every argument is quoted, counted or refused.

A command is a list of words, and only this module makes words of foreign text. Text with a line
break, a NUL or another control character is refused, since no folder, name or search has one and a
line break could begin a second command. Other text is sent as a quoted string when it is ASCII, and
else as a literal with its length, so nothing in it is read as part of the protocol.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from datetime import date
from typing import TypeAlias

from tools.framework.clean_text import quote
from tools.framework.errors import InputError

LONGEST_TEXT = 500
CONTROL = re.compile(r"[\x00-\x1f\x7f\u0080-\u009f\u2028\u2029]")
PLAIN = re.compile(r"[\x20-\x7e]*")
#: Atoms that our code writes: commands, flags, numbers, sets and sections.
ATOM = re.compile(r"[A-Za-z0-9\\$.:*,+<>\[\]=/_-]+")
SHIFTED = re.compile(r"&([A-Za-z0-9+,]*)-")
UNPLAIN = re.compile(r"[^\x20-\x7e]+")
#: English in every locale, as the protocol requires.
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


@dataclass(frozen=True, slots=True)
class Literal:
    """Bytes that are sent after their length."""

    data: bytes


Word: TypeAlias = bytes | Literal


def encode_atom(text: str) -> bytes:
    """Encode a word that our code wrote; raises ValueError for anything else."""
    if not ATOM.fullmatch(text):
        raise ValueError(f"{text!r} is not an atom")
    return text.encode("ascii")


def encode_string(text: str, what: str) -> Word:
    """Encode a text as one string; `what` names it in the InputError."""
    if CONTROL.search(text) or len(text) > LONGEST_TEXT:
        raise InputError(
            f"{what} {quote(text)} is refused: it must be one line of at most {LONGEST_TEXT}"
            " characters, without control characters."
        )
    if PLAIN.fullmatch(text):
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'.encode("ascii")
    return Literal(text.encode("utf-8", errors="replace"))


def encode_folder(name: str) -> Word:
    """Encode the name of a folder in the modified UTF-7 of IMAP."""
    if not name:
        raise InputError("A folder must be named, for example INBOX.")
    return encode_string(encode_utf7(name) if not CONTROL.search(name) else name, "The folder")


def encode_date(text: str, what: str) -> bytes:
    """Encode 2026-11-22 as 22-Nov-2026; `what` names it in the InputError."""
    try:
        found = date.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"{what} must be a date like 2026-11-22, not {quote(text)}.") from error
    return encode_atom(f"{found.day:02}-{MONTHS[found.month - 1]}-{found.year:04}")


def encode_utf7(name: str) -> str:
    """Encode a name in ASCII: & is &-, other characters are base64 between & and -."""

    def shifted(found: re.Match[str]) -> str:
        encoded = base64.b64encode(found[0].encode("utf-16-be", errors="replace"))
        return f"&{encoded.decode('ascii').rstrip('=').replace('/', ',')}-"

    return UNPLAIN.sub(shifted, name.replace("&", "&-"))


def decode_utf7(name: str) -> str:
    """Decode a name in modified UTF-7; malformed parts stay as they are."""

    def unshifted(found: re.Match[str]) -> str:
        encoded = found[1].replace(",", "/")
        if not encoded:
            return "&"
        try:
            data = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
            return data.decode("utf-16-be")
        except ValueError:
            return found[0]

    return SHIFTED.sub(unshifted, name)
