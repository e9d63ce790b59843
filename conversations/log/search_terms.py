"""Terms: a text as search compares it, the same for what is stored and for what is asked.

Both databases get terms that were cut here, so they find the same: folded to lower case without
accents, one term per word, and one per character in scripts that put no spaces between words, so
that any part of such a text is found as a phrase. What is asked for is words (each also finds
longer words that begin with it) and phrases in quotation marks; all of them must be there. Nothing
a person types is ever an operator of a database.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import NamedTuple

#: A longer word is cut; nobody types it, and a tsvector takes no longer one than 2 kB.
MOST_CHARS = 64
#: Terms and bytes of one part: a tsvector counts 16,383 places and holds less than 1 MB.
MOST_TERMS, MOST_BYTES = 12_000, 400_000
#: Words and characters of a question that count.
MOST_PHRASES, MOST_QUERY_CHARS = 12, 400
#: A shorter word finds only itself.
LEAST_PREFIX = 2
#: Thai to Myanmar, Khmer, kana, Han, Hangul: no spaces, or endings that hide where a word ends.
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_PLAIN = re.compile("[0-9A-Za-z]+")
#: Accents of Latin, Greek and Cyrillic; the marks of other scripts tell words apart.
_ACCENTS = re.compile("[\u0300-\u036f]")


class Term(NamedTuple):
    """A term with the place of its text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a text that is indexed as one row."""

    text: str
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Phrase:
    """Terms that must follow each other; the last may be the beginning of a word."""

    terms: tuple[str, ...]
    is_prefix: bool


def split_terms(text: str) -> Iterator[Term]:
    """Cut a text into its terms, first to last."""
    if text.isascii():
        # Most texts are, and there a word is what it looks like.
        for match in _PLAIN.finditer(text):
            yield Term(match[0].lower()[:MOST_CHARS], match.start(), match.end())
        return
    for match in _pattern().finditer(text):
        folded = fold_word(match[0])[:MOST_CHARS]
        if folded:
            yield Term(folded, match.start(), match.end())


def fold_word(word: str) -> str:
    """Make spellings equal that people do not tell apart when they search."""
    if word.isascii():
        return word.lower()
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", word))
    # A second look: ligatures and the like come apart into more than letters.
    return "".join(_pattern().findall(unicodedata.normalize("NFC", bare).casefold()))


def split_parts(text: str) -> Iterator[Part]:
    """Cut a text into pieces that an index takes, between terms."""
    found: list[str] = []
    size = start = 0
    for term in split_terms(text):
        if len(found) == MOST_TERMS or size > MOST_BYTES:
            yield Part(text[start : term.start], tuple(found))
            found, size, start = [], 0, term.start
        found.append(term.text)
        size += len(term.text.encode()) + 8
    if found:
        yield Part(text[start:], tuple(found))


def parse_query(question: str) -> tuple[Phrase, ...]:
    """Read a question; empty when there is no word in it."""
    found = []
    for quoted, bare in re.findall(r'"([^"]*)"?|([^"\s]+)', question[:MOST_QUERY_CHARS]):
        words = tuple(term.text for term in split_terms(quoted or bare))
        if words:
            is_prefix = not quoted and (len(words) > 1 or len(words[0]) >= LEAST_PREFIX)
            found.append(Phrase(words, is_prefix))
    return tuple(found[:MOST_PHRASES])


def find_hits(text: str, question: tuple[Phrase, ...]) -> Iterator[tuple[int, int]]:
    """Give the places in a text that a question found, first to last; cut only as far as asked."""
    row = split_terms(text)
    ahead = list(islice(row, max((len(each.terms) for each in question), default=0)))
    behind = 0
    while ahead:
        length = max((len(each.terms) for each in question if _starts_with(ahead, each)), default=0)
        if length and ahead[0].start >= behind:
            behind = ahead[length - 1].end
            yield ahead[0].start, behind
        ahead = [*ahead[1:], *islice(row, 1)]


def _starts_with(row: list[Term], wanted: Phrase) -> bool:
    """Say whether the row begins with what is wanted."""
    *before, end = wanted.terms
    if len(row) <= len(before) or any(
        term.text != text for term, text in zip(row, before, strict=False)
    ):
        return False
    last = row[len(before)].text
    return last.startswith(end) if wanted.is_prefix else last == end


@cache
def _pattern() -> re.Pattern[str]:
    marks = _marks()
    return re.compile(f"[{_SPACELESS}][{marks}]*|(?:(?![{_SPACELESS}])[^\\W_][{marks}]*)+")


@cache
def _marks() -> str:
    """Give the combining marks, as ranges of a character class."""
    found: list[list[int]] = []
    for code in range(0x300, min(sys.maxunicode, 0x1FFFF)):
        if unicodedata.category(chr(code))[0] == "M":
            if found and found[-1][1] == code - 1:
                found[-1][1] = code
            else:
                found.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in found)
