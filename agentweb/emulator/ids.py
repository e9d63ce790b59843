"""Identifiers in the API's format, derived from the seed and the request alone."""

from __future__ import annotations

from hashlib import blake2b

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def digest(*parts: bytes, size: int = 16) -> bytes:
    """Hash the parts so that different splits of the same bytes differ."""
    total = blake2b(digest_size=size)
    for part in parts:
        total.update(len(part).to_bytes(8, "big"))
        total.update(part)
    return total.digest()


def make_id(prefix: str, *parts: bytes) -> str:
    number = int.from_bytes(digest(*parts, size=17), "big")
    letters = []
    for _ in range(22):
        number, index = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[index])
    return f"{prefix}_01{''.join(letters)}"
