"""Texts that a text may hold in another form: percent, entities, escapes, base64 and the like.

Other characters for the same letters are read by `disguises`.

Whoever wants words of a private text to leave unseen has the model write them in another form. Each
form that a receiver could read back by one command is tried, up to three deep. A form is *hidden*
where a person who reads the text would not see the words. Pure; linear in the text, within limits.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import string
import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from urllib.parse import unquote

from conversations.toolbox.disguises import read_leet, read_signs, read_unseen, replace_lookalikes

MOST_DEPTH = 3
#: Most forms of one text, and characters of all of them.
MOST_FORMS, MOST_CHARACTERS = 400, 300_000
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}")
_BASE64_PART = re.compile(r"[A-Za-z0-9+_-]{8,}")
_BASE32 = re.compile(r"[A-Za-z2-7]{16,}")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2}[\s:,.-]?){5,}")
_CODES = re.compile(r"(?:\d{2,3}[\s,;.+_-]+){4,}\d{2,3}")
_ESCAPE = re.compile(r"\\(?:u\{?([0-9a-fA-F]{4,6})\}?|x([0-9a-fA-F]{2}))")
_PUNYCODE = re.compile(r"xn--[a-z0-9-]+", re.IGNORECASE)
_BITS = re.compile(r"(?:[01]{8}\s?){5,}")
_BASE85 = re.compile(r"[!-~]{12,}")
_UUENCODED = re.compile(r"[ -`]{12,}")
_LETTERS = string.ascii_lowercase
_ATBASH = str.maketrans(_LETTERS + _LETTERS.upper(), (_LETTERS + _LETTERS.upper())[::-1].swapcase())


def list_forms(text: str) -> list[tuple[str, bool]]:
    """Return the text and what it may hold in other forms; True: a person would not see it."""
    start = _normalise(text)
    found: dict[str, bool] = {start: False}
    found |= {_normalise(each): True for each in read_unseen(text) if each.strip()}
    waiting, room = [(form, hides, 0) for form, hides in found.items()], MOST_CHARACTERS
    while waiting and len(found) < MOST_FORMS and room > 0:
        form, is_hidden, depth = waiting.pop(0)
        if depth == MOST_DEPTH:
            continue
        for other, hides in _decode(form[:room]):
            room -= len(other)
            if other.strip() and other not in found:
                found[other] = is_hidden or hides
                waiting.append((other, is_hidden or hides, depth + 1))
    # Words backwards, shifted by 13 letters, with the alphabet reversed or in leet, once for each.
    turned = [(turn(form), True) for form in found for turn in (_reverse, _rotate, _mirror)]
    spelled = [(each, True) for form in found for each in read_leet(form)]
    return [*found.items(), *turned, *spelled]


def _normalise(text: str) -> str:
    """Fold compatible characters, and leave out those that are not seen."""
    folded = unicodedata.normalize("NFKC", text)
    return "".join(c for c in folded if unicodedata.category(c) != "Cf")


def _reverse(text: str) -> str:
    return text[::-1]


def _rotate(text: str) -> str:
    return codecs.encode(text, "rot13")


def _mirror(text: str) -> str:
    return text.translate(_ATBASH)


def _decode(text: str) -> Iterator[tuple[str, bool]]:
    if "%" in text:
        raw = unquote(text)
        yield _normalise(raw), False
        yield from ((_normalise(each), True) for each in read_unseen(raw))
    if not text.isascii():
        yield replace_lookalikes(text), False
    yield from ((each, True) for each in read_signs(text))
    if "&" in text:
        yield _normalise(html.unescape(text)), False
    if "\\" in text:
        yield _normalise(_ESCAPE.sub(_unescape, text)), False
    for pattern, decode in _PACKED:
        for run in pattern.findall(text):
            yield from ((_normalise(each), True) for each in decode(run))


def _unescape(match: re.Match[str]) -> str:
    return chr(min(int(match[1] or match[2], 16), 0x10FFFF))


def _read_base64(run: str) -> Iterator[str]:
    """Yield what a run decodes to; its first characters may belong to something before it."""
    plain = run.replace("-", "+").replace("_", "/")
    for start in range(4):
        part = plain[start:]
        rest = len(part) % 4
        part = part[:-1] if rest == 1 else part
        yield from _read_bytes(partial(base64.b64decode, part + "=" * (-len(part) % 4)))


def _read_base32(run: str) -> Iterator[str]:
    whole = run.upper()
    yield from _read_bytes(lambda: base64.b32decode(whole + "=" * (-len(whole) % 8)))


def _read_hex(run: str) -> Iterator[str]:
    yield from _read_bytes(lambda: bytes.fromhex(re.sub(r"[\s:,.-]", "", run)))


def _read_codes(run: str) -> Iterator[str]:
    numbers = [int(each) for each in re.findall(r"\d+", run)]
    if all(9 <= each < 256 for each in numbers):
        yield from _read_bytes(lambda: bytes(numbers))


def _read_bits(run: str) -> Iterator[str]:
    bits = re.sub(r"\s", "", run)
    yield from _read_bytes(lambda: int(bits, 2).to_bytes(len(bits) // 8, "big"))


def _read_punycode(run: str) -> Iterator[str]:
    try:
        yield run[4:].encode("ascii").decode("punycode")
    except (UnicodeError, ValueError):
        return


def _read_base85(run: str) -> Iterator[str]:
    """Yield what a run says in both alphabets, whole or from its first sign of equality."""
    for part in {run, run.partition("=")[2]} - {""}:
        for decode in (base64.a85decode, base64.b85decode):
            yield from _read_bytes(partial(decode, part.encode()))


def _read_uuencoded(run: str) -> Iterator[str]:
    for part in {run, run.partition("=")[2]} - {""}:
        yield from _read_bytes(partial(binascii.a2b_uu, part))


def _read_bytes(read: Callable[[], bytes]) -> Iterator[str]:
    try:
        data = read()
    except (binascii.Error, ValueError):
        return
    text = data.decode("utf-8", errors="ignore")
    if sum(map(str.isprintable, text)) * 4 >= len(data) * 3:
        yield text
    if data[1::2].count(0) * 4 >= len(data):
        yield data.decode("utf-16-le", errors="ignore")


_PACKED: tuple[tuple[re.Pattern[str], Callable[[str], Iterator[str]]], ...] = (
    (_BASE64, _read_base64),
    (_BASE64_PART, _read_base64),
    (_BASE32, _read_base32),
    (_HEX, _read_hex),
    (_CODES, _read_codes),
    (_BITS, _read_bits),
    (_BASE85, _read_base85),
    (_UUENCODED, _read_uuencoded),
    (_PUNYCODE, _read_punycode),
)
