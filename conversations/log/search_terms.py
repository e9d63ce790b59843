"""Search terms: texts and queries, split and folded in the same way.

Both databases store terms that were split here, so they find the same: folded to lower case without
accents, one term per word, and one per character in scripts without spaces between words, so that
any part of such a text is found as a phrase. A query consists of words (each also finds longer
words that begin with it) and of phrases in quotation marks; all must match. No typed text is ever
interpreted as an operator of a database.
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

#: Longer words are cut: a tsvector takes words up to 2 kB, and no query has words that long.
MOST_CHARS = 64
#: Terms and bytes of one part: a tsvector has at most 16,383 positions and less than 1 MB.
MOST_TERMS, MOST_BYTES = 12_000, 400_000
#: Phrases and characters of a query that are used.
MOST_PHRASES, MOST_QUERY_CHARS = 12, 400
#: Shorter words do not match as prefixes.
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
    """A term and the span of its source text."""

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
    """Yield the terms of a text, first to last."""
    if text.isascii():
        # Fast path: most texts are ASCII.
        for match in _PLAIN.finditer(text):
            yield Term(match[0].lower()[:MOST_CHARS], match.start(), match.end())
        return
    for match in _compile_pattern().finditer(text):
        folded = fold_word(match[0])[:MOST_CHARS]
        if folded:
            yield Term(folded, match.start(), match.end())


def fold_word(word: str) -> str:
    """Fold spellings that people do not distinguish when they search."""
    if word.isascii():
        return word.lower()
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", word))
    # Split again: ligatures and the like decompose into more than letters.
    return "".join(_compile_pattern().findall(unicodedata.normalize("NFC", bare).casefold()))


def split_parts(text: str) -> Iterator[Part]:
    """Yield pieces of a text that fit in an index row, split between terms."""
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
    """Read a query; empty when it has no word."""
    found = []
    for quoted, bare in re.findall(r'"([^"]*)"?|([^"\s]+)', question[:MOST_QUERY_CHARS]):
        words = tuple(term.text for term in split_terms(quoted or bare))
        if words:
            is_prefix = not quoted and (len(words) > 1 or len(words[0]) >= LEAST_PREFIX)
            found.append(Phrase(words, is_prefix))
    return tuple(found[:MOST_PHRASES])


def find_hits(text: str, question: tuple[Phrase, ...]) -> Iterator[tuple[int, int]]:
    """Yield the spans of a text that match a query; the text is read only as far as needed."""
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
    """Return whether the terms begin with the phrase."""
    *before, end = wanted.terms
    if len(row) <= len(before) or any(
        term.text != text for term, text in zip(row, before, strict=False)
    ):
        return False
    last = row[len(before)].text
    return last.startswith(end) if wanted.is_prefix else last == end


@cache
def _compile_pattern() -> re.Pattern[str]:
    marks = _list_marks()
    return re.compile(f"[{_SPACELESS}][{marks}]*|(?:(?![{_SPACELESS}])[^\\W_][{marks}]*)+")


@cache
def _list_marks() -> str:
    """Return the combining marks, as ranges of a character class."""
    found: list[list[int]] = []
    for code in range(0x300, min(sys.maxunicode, 0x1FFFF)):
        if unicodedata.category(chr(code))[0] == "M":
            if found and found[-1][1] == code - 1:
                found[-1][1] = code
            else:
                found.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in found)
