"""Phrases and words as keyed digests, so that erased text can be searched for and not read.

A phrase is four neighbouring words. Of each 32 phrases in a row at least one is kept, chosen by its
digest (winnowing), so that any piece of 35 words that was left behind is found. Words are runs of
letters and digits in the bytes themselves, in lower case, so that texts, wire text and the raw
pages of a database are split alike. The key is derived from SECRET_KEY: a copy of the database
alone does not allow guessing what was erased.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from hashlib import blake2b, sha256

from django.conf import settings

#: Words of a phrase; phrases of which one is kept; bytes of a digest.
WORDS, WINDOW, SIZE = 4, 32, 8
#: A word, in bytes in lower case.
RUN = re.compile(rb"[0-9a-z\x80-\xff]+")
#: Bytes that are split at a time.
_PIECE = 1_000_000


def read_key() -> bytes:
    """Return the key of the digests, 32 bytes."""
    return sha256(f"erased phrases:{settings.SECRET_KEY}".encode()).digest()


def fingerprint_key(key: bytes) -> bytes:
    """Return by what digests tell which key they were made with, 8 bytes."""
    return blake2b(b"fingerprint", digest_size=SIZE, key=key).digest()


def digest_word(word: bytes, key: bytes) -> bytes:
    return blake2b(word.lower(), digest_size=SIZE, key=key).digest()


def digest_phrases(pieces: Iterable[bytes], key: bytes) -> Iterator[bytes]:
    """Yield the digest of every phrase of a text that comes in pieces, first to last."""
    last: deque[bytes] = deque(maxlen=WORDS)
    for word in _split_words(pieces):
        last.append(word)
        if len(last) == WORDS:
            yield blake2b(b" ".join(last), digest_size=SIZE, key=key).digest()


def choose_phrases(text: bytes, key: bytes) -> set[bytes]:
    """Return the digests by which a text is searched for: the least of every window."""
    found = list(digest_phrases([text], key))
    if len(found) <= WINDOW:
        return {min(found)} if found else set()
    kept: set[bytes] = set()
    least = -1
    for end in range(WINDOW, len(found) + 1):
        if least < end - WINDOW:
            least = min(range(end - WINDOW, end), key=found.__getitem__)
        elif found[end - 1] < found[least]:
            least = end - 1
        kept.add(found[least])
    return kept


def pack_digests(digests: Iterable[bytes]) -> bytes:
    """Join digests into one value of a column, in order."""
    return b"".join(sorted(digests))


def unpack_digests(packed: bytes | memoryview) -> set[bytes]:
    return {bytes(packed[at : at + SIZE]) for at in range(0, len(packed), SIZE)}


def _split_words(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the words of a text in pieces; one that lies across two pieces is one word."""
    rest = b""
    for piece in pieces:
        for start in range(0, len(piece), _PIECE):
            data = rest + piece[start : start + _PIECE].lower()
            rest = b""
            for match in RUN.finditer(data):
                # Only a word of a bounded length is carried on: base64 has no end.
                if match.end() == len(data) and len(match[0]) < _PIECE:
                    rest = match[0]
                else:
                    yield match[0]
    if rest:
        yield rest
