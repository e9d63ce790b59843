"""The text of a file as a message has it: whole, or the beginning of each of its parts.

Run in a process with limits (`tools/isolation`).
"""

from __future__ import annotations

from tools.documents.document_kind import detect_kind
from tools.documents.document_text import join_parts, list_parts
from tools.documents.parts import Part
from tools.documents.text_files import decode_text_file


def read_attached(data: bytes, name: str, most: int) -> tuple[str, int]:
    """Return at most about so many characters of the text, and how many it has."""
    if detect_kind(data, name, "") == "text":
        parts = [Part("", decode_text_file(data, name, takes_any_charset=True))]
    else:
        parts = list_parts(data, name)
    whole = join_parts(parts)
    if len(whole) <= most:
        return whole, len(whole)
    share = _compute_share([len(part.text) for part in parts], most)
    return join_parts([_shorten(part, share) for part in parts])[: 2 * most], len(whole)


def _compute_share(sizes: list[int], most: int) -> int:
    """Return how much of each part fits, so that short parts stay whole."""
    left = most
    for done, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - done)
        if size > share:
            return share
        left -= size
    return most


def _shorten(part: Part, share: int) -> Part:
    if len(part.text) <= share:
        return part
    size = f"the first {share:,} of {len(part.text):,} characters"
    return Part(f"{part.title}: {size}" if part.title else size, part.text[:share])
