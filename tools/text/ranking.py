"""Rank texts by the words of a query, and find the best passage of each.

BM25 over whole texts with the squared weight of rare words, because an agent most often looks for
an identifier, a path or a number among common words; plus a share for the best passage, so that a
text with all words in one place ranks above one in which they are scattered. Length counts little:
it says nothing about relevance here. Words are also counted as parts of longer words, without
splitting the texts: the cost is a few linear searches in C for each text, whatever its language.
Identifiers of a query are also searched by their parts, since prose names them otherwise than code.
Words are counted once in each text. Of Japanese only what carries meaning is searched: katakana
words whole, other scripts in pairs of characters, hiragana only where it stands alone. Texts that
share a mark (the input and the result of one call, the same file read again) are one entry, so that
copies do not take the place of others; so are near copies that the query does not tell apart (other
versions of a file), which the entry names.

A word that no text has is searched by its beginning, so that "invoices" finds an invoice.

A query may say so little that most texts have its words ("read", a folder). Then words of its
context, as the caller knows them, rank these texts, weakly: they find none that the query does not.

Of 58 facts of recorded sessions that occurred only far back, two thirds have their original among
the first three (66 %) when the query is what the agent wrote around the fact, without it; with
SQLite's FTS5 a third (33 %), with rank-bm25 0.2.2 31 % (`manage.py bench search`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from unicodedata import normalize

from tools.text.lower_case import lower_text

#: Words of a query that are used, and characters of it that are read.
MOST_WORDS, MOST_CHARS = 80, 1_000
#: The parameters k1 and b of BM25: saturation of repeated words, and the weight of length.
_SATURATION, _LENGTH = 1.2, 0.2
#: Characters of a passage and of what it shows before the first word; places at which a passage is
#: tried for each word.
_PASSAGE, _BEFORE, _PLACES = 400, 80, 40
#: The weight of the best passage relative to the whole text.
_PASSAGE_SHARE = 0.3
#: Sums of the same weights may differ by so much.
_ROUNDING = 1e-9
#: The words of a query say little if together they weigh less than this share of a word that only
#: one text has: as much as one word that the square root of all texts have.
_LITTLE = 0.25
#: The weight of the context of a query whose words say nothing.
_CONTEXT_WEIGHT = 0.1
#: Texts of at least so many characters with this percentage of common words are near copies.
_SHORTEST_COPY, _ALIKE = 200, 80
#: Characters of two texts that are compared, and first rows among which near copies are looked for.
_COMPARED, _LOOKED_AT = 20_000, 40
#: Near copies that an entry names.
_MOST_COPIES = 2
_TOKEN = re.compile(r"[^\s\"'`(){}\[\]<>,;]+")
_WORD = re.compile(r"[^\W_]+")
#: Where a word in mixed case has parts; shorter parts say nothing.
_CASE = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SHORTEST_PART = 3
#: A word of letters alone, which may have an ending; characters that are tried as its ending, and
#: the percentage of the word, and the characters, that stay of it.
_LETTERS = re.compile(r"[^\W\d_]+")
_LONGEST_ENDING, _STEM, _SHORTEST_STEM = 3, 60, 4
#: Scripts without spaces between words: kana, Han with its signs 々〆〇, and Thai and Hangul.
_KATAKANA, _HAN = "\u30a0-\u30ff", "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff"
_OTHERS = "\u0e00-\u0e7f\uac00-\ud7af"
_SPACELESS = re.compile(f"[\u3040-\u309f{_KATAKANA}{_HAN}{_OTHERS}]")
#: A run of one script is a part of a sentence, and one of katakana a word.
_RUN = re.compile(
    f"[{_KATAKANA}]+|[{_HAN}]+|[\u3040-\u309f]+|[{_OTHERS}]+"
    f"|[^\u3040-\u309f{_KATAKANA}{_HAN}{_OTHERS}]+"
)
_WHOLE = re.compile(f"[{_KATAKANA}]+")
#: Beside other scripts it writes endings and particles, the stop words of Japanese.
_HIRAGANA = re.compile("[\u3040-\u309f]+")
#: Stop words, those of announcements ("let me look") included.
_COMMON = frozenset(
    _WORD.findall(
        "a about above after again against all also am an and any are as at be because been before"
        " being below between both but by can could did do does doing down during each few for from"
        " further get had has have he her here hers him himself his how i if in into is it its"
        " itself just let like ll look make may me more most my need no nor not now of off on once"
        " one only or other our out over own re same see she should so some such than that the"
        " their them then there these they this those through to too under until up us use using"
        " ve very want was we were what when where which while who why will with would yes you your"
    )
)


@dataclass(frozen=True, slots=True)
class RankedText:
    """A found text: its key, and its best passage from character `start` on.

    `words` says which words of the query it has; `copies` are the keys of near copies.
    """

    key: str
    score: float
    start: int
    passage: str
    marks: tuple[Hashable, ...] = ()
    text: str = field(default="", repr=False)
    words: tuple[bool, ...] = ()
    copies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Added:
    key: str
    text: str
    lowered: str
    weight: float
    marks: tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class _Counted:
    """A text with a word of the query, and how often it has each word."""

    added: _Added
    counts: tuple[int, ...]


def rank_texts(
    texts: list[tuple[str, str, float, tuple[Hashable, ...]]],
    query: str,
    most: int,
    context: str = "",
) -> list[tuple[str, str, tuple[str, ...]]]:
    """Rank keys with their texts, weights and marks.

    Return the best keys, each with its passage and the keys of near copies.
    """
    ranking = Ranking(query, context)
    for key, text, weight, marks in texts:
        ranking.add(key, text, weight, marks)
    return [(row.key, row.passage, row.copies) for row in ranking.list_best(most)]


def choose_distinct(rows: Iterable[RankedText], most: int) -> list[RankedText]:
    """Return the first rows, without those that share a mark with one before or are near copies."""
    copies: dict[RankedText, list[str]] = {}
    seen: set[Hashable] = set()
    for at, row in enumerate(rows):
        if len(copies) == most and at >= _LOOKED_AT:
            break
        if not seen.isdisjoint(row.marks):
            continue
        first = next((one for one in copies if _is_near_copy(row, one)), None)
        if first is not None:
            copies[first].append(row.key)
        elif len(copies) < most:
            copies[row] = []
        else:
            continue
        seen.update(row.marks)
    return [replace(row, copies=tuple(keys[:_MOST_COPIES])) for row, keys in copies.items()]


def _is_near_copy(one: RankedText, other: RankedText) -> bool:
    """Whether two texts have nearly the same words, and the same ones of the query."""
    shorter, longer = sorted((len(one.text), len(other.text)))
    if one.words != other.words or shorter < max(_SHORTEST_COPY, longer * _ALIKE // 100):
        return False
    mine, others = set(one.text[:_COMPARED].split()), set(other.text[:_COMPARED].split())
    return 100 * len(mine & others) >= _ALIKE * len(mine | others)


class Ranking:
    """The ranking of added texts, each with a key of its own, by one query.

    `context` is what was said around the query; it counts only where the query says little.
    """

    def __init__(self, query: str, context: str = "") -> None:
        self._query, self._context = query, context
        self._added: list[_Added] = []

    def add(
        self, key: str, text: str, weight: float = 1.0, marks: tuple[Hashable, ...] = ()
    ) -> None:
        """Add a text; its score is multiplied by `weight`."""
        self._added.append(_Added(key, text, lower_text(text), weight, marks))

    def list_best(self, most: int) -> list[RankedText]:
        """Return the best texts, best first, of those that are copies only the best."""
        return choose_distinct(self.list_all(), most)

    def list_all(self) -> list[RankedText]:
        """Return all texts with a word of the query, best first; of equal ones the last first."""
        texts = [one.lowered for one in self._added]
        forms = {word: _find_forms(word, texts) for word in read_words(self._query)}
        words = tuple(dict.fromkeys(form for found in forms.values() for form in found))
        found = list(self._count_words(words))
        weights = self._weigh_words(words, found)
        added = self._score_context(_weigh_query(self._query, forms, weights)) if found else {}
        usual = max(1.0, sum(map(len, texts)) / max(1, len(texts)))
        rows = [
            _rank_text(one, weights, usual, added.get(one.added.key, 0.0))
            for one in reversed(found)
        ]
        return sorted(rows, key=lambda row: -row.score)

    def _count_words(self, words: tuple[str, ...]) -> Iterator[_Counted]:
        """Yield the texts that have any of the words."""
        for one in self._added:
            counts = tuple(one.lowered.count(word) for word in words)
            if any(counts):
                yield _Counted(one, counts)

    def _weigh_words(self, words: tuple[str, ...], found: list[_Counted]) -> dict[str, float]:
        """Return the weight of each word; one that no text has tells nothing apart."""
        have = [sum(one.counts[at] > 0 for one in found) for at in range(len(words))]
        weights = (self._weigh(count) if count else 0.0 for count in have)
        return dict(zip(words, weights, strict=True))

    def _weigh(self, with_word: int) -> float:
        """Return the squared inverse document frequency of a word that so many texts have."""
        return math.log(1 + (len(self._added) - with_word + 0.5) / (with_word + 0.5)) ** 2

    def _score_context(self, said: float) -> dict[str, float]:
        """Return what the context adds to each key: the less, the more the query itself says."""
        share = 1 - said / (_LITTLE * self._weigh(1)) if self._context else 0.0
        if share <= 0:
            return {}
        # It refers to the same texts: they may be most of the memory that a search may use.
        ranking = Ranking(self._context)
        ranking._added = self._added
        return {row.key: _CONTEXT_WEIGHT * share * row.score for row in ranking.list_all()}


def _rank_text(one: _Counted, weights: dict[str, float], usual: float, added: float) -> RankedText:
    """Score a text among texts that usually have so many characters; `added` is of the context."""
    of = one.added
    damped = _SATURATION * (1 - _LENGTH + _LENGTH * len(of.text) / usual)
    whole = sum(
        weight * count * (_SATURATION + 1) / (count + damped)
        for weight, count in zip(weights.values(), one.counts, strict=True)
    )
    start, said = _find_passage(of.lowered, weights)
    score = of.weight * (whole + _PASSAGE_SHARE * said) + added
    passage = " ".join(of.text[start : start + _PASSAGE].split())
    has = tuple(map(bool, one.counts))
    return RankedText(of.key, score, start, passage, of.marks, of.text, has)


def read_words(query: str) -> tuple[str, ...]:
    """Return the search terms of a query: tokens as they are written, and the words in them."""
    found = [word for terms in _list_names(query) for word in terms]
    words = dict.fromkeys(word for word in found if word not in _COMMON)
    return tuple([*(words or dict.fromkeys(found))][:MOST_WORDS])


def _list_names(query: str) -> Iterator[tuple[str, ...]]:
    """Yield the terms of each token of a query, which are forms of one name.

    Of a script without spaces a token is a sentence, so each of its parts is a name of its own.
    """
    for token in _TOKEN.findall(normalize("NFC", query[:MOST_CHARS])):
        stripped = token.strip(".:!?…/\\")
        parts = [part for word in _WORD.findall(stripped) for part in _split_word(word)]
        terms = [word for word in parts if len(word) > 1 or _SPACELESS.match(word)]
        if _SPACELESS.search(stripped):
            yield from ((word,) for word in terms)
        elif len(parts) > 1:
            yield (lower_text(stripped), *terms)
        else:
            yield tuple(terms)


def _weigh_query(query: str, forms: dict[str, tuple[str, ...]], weights: dict[str, float]) -> float:
    """Return how much a query says: of each name what its rarest term does.

    A long path would else say the more, the more folders are in it, though all texts have them.
    """
    return sum(
        max((weights[form] for word in terms for form in forms.get(word, ())), default=0.0)
        for terms in dict.fromkeys(_list_names(query))
    )


def _find_forms(word: str, texts: Sequence[str]) -> tuple[str, ...]:
    """Return the forms of a word that texts have: the word, or its longest beginning; each also
    with its accents as characters of their own (names of files on macOS).
    """
    for form in _list_beginnings(word):
        spelt = dict.fromkeys((form, normalize("NFD", form)))
        if found := tuple(each for each in spelt if any(each in text for text in texts)):
            return found
    return (word,)


def _list_beginnings(word: str) -> Iterator[str]:
    """Yield a word, and its beginnings without a possible ending, longest first."""
    yield word
    if _LETTERS.fullmatch(word) and not _SPACELESS.search(word):
        shortest = max(_SHORTEST_STEM, -(-len(word) * _STEM // 100), len(word) - _LONGEST_ENDING)
        yield from (word[:end] for end in range(len(word) - 1, shortest - 1, -1))


def _split_word(word: str) -> Iterable[str]:
    """Return a word and its parts in lower case.

    The parts are those of mixed case. A text of a script without spaces has instead katakana words
    and pairs of characters: an approximation of its words.
    """
    lowered = lower_text(word)
    if _SPACELESS.search(word):
        runs = _RUN.findall(lowered)
        said = [run for run in runs if not _HIRAGANA.fullmatch(run)] or runs
        return [part for run in said for part in _split_run(run)]
    parts = _CASE.split(word)
    longer = [lower_text(part) for part in parts if len(part) >= _SHORTEST_PART]
    return [lowered, *longer] if len(parts) > 1 else [lowered]


def _split_run(run: str) -> Iterable[str]:
    if len(run) <= 2 or _WHOLE.fullmatch(run) or not _SPACELESS.match(run):
        return [run]
    return [run[at : at + 2] for at in range(len(run) - 1)]


def _find_passage(lowered: str, words: dict[str, float]) -> tuple[int, float]:
    """Return where the passage begins whose words weigh most together, and what they weigh."""
    places: list[tuple[int, str]] = []
    for word in words:
        place = lowered.find(word)
        for _ in range(_PLACES):
            if place < 0:
                break
            places.append((place, word))
            place = lowered.find(word, place + _PASSAGE // 4)
    places.sort()
    start, best, said, first = 0, 0.0, 0.0, 0
    inside: Counter[str] = Counter()
    for place, word in places:
        inside[word] += 1
        said += words[word] if inside[word] == 1 else 0.0
        # It shows a little text before its first word, and the last word as a whole.
        while places[first][0] < min(place, place + len(word) - _PASSAGE + _BEFORE):
            left = places[first][1]
            inside[left] -= 1
            said -= 0.0 if inside[left] else words[left]
            first += 1
        if said > best + _ROUNDING:
            best, start = said, places[first][0]
    before = max(0, start - _BEFORE)
    # From the beginning of a line or a word.
    return (lowered.find(" ", before, start) + 1 or before, best)
