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

A query may say so little that most texts have its words ("read", a folder). Then words of its
context, as the caller knows them, rank these texts, weakly: they find none that the query does not.

Of 77 facts of recorded sessions that occurred only far back, the original is among the first five
for 59 when the query is what the agent wrote around the fact, without it; SQLite's FTS5 finds 40,
rank-bm25 0.2.2 finds 36 (`manage.py bench search`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace

from tools.text.lower_case import lower_text

#: Words of a query that are used, and characters of it that are read.
MOST_WORDS, MOST_CHARS = 80, 1_000
#: The parameters k1 and b of BM25: saturation of repeated words, and the weight of length.
_SATURATION, _LENGTH = 1.2, 0.2
#: Characters of a passage, and places at which a passage is tried for each word.
_PASSAGE, _PLACES = 400, 40
#: The weight of the best passage relative to the whole text.
_PASSAGE_SHARE = 0.3
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
class _Counted:
    key: str
    weight: float
    marks: tuple[Hashable, ...]
    text: str
    counts: tuple[int, ...]
    #: The words of the best passage, and where it begins.
    passage_words: frozenset[int]
    start: int
    passage: str


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
        self.words = read_words(query)
        self._context = context
        self._added: list[tuple[str, str, float]] = []
        self._found: list[_Counted] = []
        self._chars = 0

    def add(
        self, key: str, text: str, weight: float = 1.0, marks: tuple[Hashable, ...] = ()
    ) -> None:
        """Count the words of the query in a text; its score is multiplied by `weight`."""
        self._added.append((key, text, weight))
        self._chars += len(text)
        lowered = lower_text(text)
        counts = tuple(lowered.count(word) for word in self.words)
        if any(counts):
            start, words = _find_passage(lowered, self.words)
            passage = " ".join(text[start : start + _PASSAGE].split())
            self._found.append(_Counted(key, weight, marks, text, counts, words, start, passage))

    def list_best(self, most: int) -> list[RankedText]:
        """Return the best texts, best first, of those that are copies only the best."""
        return choose_distinct(self.list_all(), most)

    def list_all(self) -> list[RankedText]:
        """Return all texts with a word of the query, best first; of equal ones the last first."""
        weights = self._weigh_words()
        added = self._score_context(sum(weights))
        usual = max(1.0, self._chars / max(1, len(self._added)))
        rows = [
            RankedText(
                one.key,
                self._score(one, weights, usual) + added.get(one.key, 0.0),
                one.start,
                one.passage,
                one.marks,
                one.text,
                tuple(map(bool, one.counts)),
            )
            for one in reversed(self._found)
        ]
        return sorted(rows, key=lambda row: -row.score)

    def _weigh_words(self) -> list[float]:
        """Return the weight of each word; one that no text has tells nothing apart."""
        with_word = [0] * len(self.words)
        for one in self._found:
            for at, count in enumerate(one.counts):
                with_word[at] += count > 0
        return [self._weigh(n) if n else 0.0 for n in with_word]

    def _weigh(self, with_word: int) -> float:
        """Return the squared inverse document frequency of a word that so many texts have."""
        return math.log(1 + (len(self._added) - with_word + 0.5) / (with_word + 0.5)) ** 2

    def _score_context(self, said: float) -> dict[str, float]:
        """Return what the context adds to each key: the less, the more the query itself says."""
        share = 1 - said / (_LITTLE * self._weigh(1)) if self._context and self._found else 0.0
        if share <= 0:
            return {}
        ranking = Ranking(self._context)
        for key, text, weight in self._added:
            ranking.add(key, text, weight)
        return {row.key: _CONTEXT_WEIGHT * share * row.score for row in ranking.list_all()}

    @staticmethod
    def _score(one: _Counted, weights: list[float], usual: float) -> float:
        damped = _SATURATION * (1 - _LENGTH + _LENGTH * len(one.text) / usual)
        whole = sum(
            weight * count * (_SATURATION + 1) / (count + damped)
            for weight, count in zip(weights, one.counts, strict=True)
        )
        passage = sum(weights[at] for at in one.passage_words)
        return one.weight * (whole + _PASSAGE_SHARE * passage)


def read_words(query: str) -> tuple[str, ...]:
    """Return the search terms of a query: tokens as they are written, and the words in them.

    Of a script without spaces a token is a sentence, so only its parts are terms.
    """
    found: dict[str, None] = {}
    for token in _TOKEN.findall(query[:MOST_CHARS]):
        stripped = token.strip(".:!?…/\\")
        parts = [part for word in _WORD.findall(stripped) for part in _split_word(word)]
        is_term = len(parts) > 1 and not _SPACELESS.search(stripped)
        for word in (lower_text(stripped), *parts) if is_term else parts:
            if len(word) > 1 or _SPACELESS.match(word):
                found[word] = None
    words = [word for word in found if word not in _COMMON]
    return tuple((words or list(found))[:MOST_WORDS])


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


def _find_passage(lowered: str, words: tuple[str, ...]) -> tuple[int, frozenset[int]]:
    """Return where the passage with the most of the words begins, and which words it has."""
    places: list[tuple[int, int]] = []
    for at, word in enumerate(words):
        place = lowered.find(word)
        for _ in range(_PLACES):
            if place < 0:
                break
            places.append((place, at))
            place = lowered.find(word, place + _PASSAGE // 4)
    places.sort()
    best, start, first = 0, 0, 0
    inside: Counter[int] = Counter()
    words_there: frozenset[int] = frozenset()
    for place, at in places:
        inside[at] += 1
        while place >= places[first][0] + _PASSAGE:
            inside[places[first][1]] -= 1
            inside += Counter()
            first += 1
        if len(inside) > best:
            best, start, words_there = len(inside), places[first][0], frozenset(inside)
    # Include a little text before it, from the beginning of a line or a word.
    before = max(0, start - _PASSAGE // 5)
    return (lowered.find(" ", before, start) + 1 or before, words_there)
