"""Finds words of private or other watched texts in a call's arguments, in any encoding. Pure.

Compared word by word, ignoring case, in every form that `encodings` lists, and also without the
separators between words, so that a number in other groups or a word in a host name is found. A
match in a text that is not private (typed, a page, another server) is *telling*, so that a person
is asked, only where it is unlikely to be chance: a word with a digit and six characters or more,
five words in a row, or a longer word in a hidden form. Arguments too long to compare in all forms,
or with characters that a person cannot read, are telling as well, and so is a text with more words
that may be within theirs than can be looked for.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from conversations.toolbox.disguises import is_unclear
from conversations.toolbox.encodings import list_forms

#: Characters of arguments that are compared in all forms, words that are named, characters of a
#: phrase.
MOST_ARGUMENTS, MOST_NAMED, MOST_PHRASE = 60_000, 12, 80
#: Characters in which the words of all texts are looked for: about two seconds.
MOST_SEARCHED = 10_000_000_000
_WORD = re.compile(r"[^\W_]+")
#: Characters of a distinctive word, words of a run, characters of a hidden word and of a word that
#: may be written in groups in the text; characters between the words of a phrase.
_GRAM, _RUN, _LONG, _GROUPED, _BETWEEN = 6, 5, 5, 8, 12
#: Most words of the arguments that are looked for in groups.
_MOST_GROUPED = 100
#: Words that say nothing about their source.
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "about after also because been before between could dear does each from have hello here"
        " html http https index into just like more most only other page query regards search some"
        " than that their them then there these they this those through were what when where which"
        " while will with would www your",
    )
)


@dataclass(frozen=True, slots=True)
class LeavingWords:
    """Words with the keys of their sources; `is_telling`: they are there by no accident."""

    words: tuple[tuple[str, str], ...] = ()
    is_telling: bool = False


@dataclass(slots=True)
class _Form:
    """One form of the arguments: its text, its words in order, and all of them in one."""

    text: str
    is_hidden: bool
    words: list[str] = field(default_factory=list)
    squeezed: str = ""


class Arguments:
    """What a call would send, ready to be compared with many texts."""

    def __init__(self, arguments: Mapping[str, Any], *, receiver: str = "") -> None:
        texts = "\n".join(_list_texts(arguments))
        self._is_too_long = len(texts) > MOST_ARGUMENTS
        self._is_unclear = self._is_too_long or is_unclear(texts) or is_unclear(unquote(texts))
        self._forms = [_make_form(*each) for each in list_forms(texts[:MOST_ARGUMENTS])]
        if self._is_too_long:
            self._forms.append(_make_form(texts[MOST_ARGUMENTS:], is_hidden=False))
        self._spared = _COMMON | set(_WORD.findall(receiver.casefold()))
        self._plain = self._collect_plain() - self._spared
        self._hidden = self._collect_hidden() - self._spared
        self._grouped = _choose_grouped(self._plain | self._hidden)
        self._squeezed = "\n".join(form.squeezed for form in self._forms)
        self._grams = _list_pieces(self._squeezed)
        #: How many more words are looked for in these.
        self._room = MOST_SEARCHED // max(1, len(self._squeezed))
        self._runs = self._collect_runs()

    def _collect_plain(self) -> set[str]:
        """Return the words of the forms that everybody can read."""
        forms = [form for form in self._forms if not form.is_hidden]
        return {word for form in forms for word in form.words}

    def _collect_hidden(self) -> set[str]:
        """Return the long words of the forms that were encoded: short ones are there by chance."""
        forms = [form for form in self._forms if form.is_hidden]
        return {word for form in forms for word in form.words if len(word) >= _LONG}

    def _collect_runs(self) -> set[tuple[str, ...]]:
        """Return all sequences of _RUN words."""
        runs = [form.words for form in self._forms]
        return {tuple(ws[at : at + _RUN]) for ws in runs for at in range(len(ws) - _RUN + 1)}

    def find(self, text: str, source: str) -> LeavingWords:
        """Return the words of a text that are in the arguments."""
        words = _WORD.findall(_fold(text))
        known = set(words)
        plain = {word for word in known & self._plain if _is_notable(word)}
        hidden = known & self._hidden
        candidates = self._list_candidates(known)
        embedded = {word for word in candidates[: self._room] if word in self._squeezed}
        is_whole = len(candidates) <= self._room
        self._room -= min(len(candidates), self._room)
        embedded |= self._find_grouped("".join(words))
        found = plain | hidden | embedded
        is_telling = (
            self._is_unclear
            or not is_whole
            or (
                any(map(_is_distinctive, plain | embedded))
                or bool(hidden - self._plain)
                or self._has_run(words)
            )
        )
        named = self._name_phrases(found, embedded)
        return LeavingWords(tuple((word, source) for word in named), is_telling)

    def repeats(self, text: str) -> bool:
        """Return whether the words of a text are in the arguments, all of them in its order."""
        return "".join(_WORD.findall(_fold(text))) in self._squeezed

    def _list_candidates(self, words: Iterable[str]) -> list[str]:
        """Return the longer words that the arguments may have with others or with separators."""
        found = (
            word
            for word in words
            if len(word) >= _GRAM
            and word[:_GRAM] in self._grams
            and word not in self._spared
            and (_is_distinctive(word) or len(word) >= 8)
        )
        return sorted(found, key=lambda word: (-len(word), word))

    def _find_grouped(self, squeezed: str) -> set[str]:
        """Return the words of the arguments that the text has in groups: `DE89 3704 0044`."""
        return {word for word in self._grouped if word in squeezed}

    def _has_run(self, words: Sequence[str]) -> bool:
        if not self._runs:
            return False
        firsts = {run[0] for run in self._runs}
        return any(
            word in firsts and tuple(words[at : at + _RUN]) in self._runs
            for at, word in enumerate(words)
        )

    def _name_phrases(self, found: set[str], embedded: set[str]) -> list[str]:
        """Return the words as they stand in the arguments, those in a row as one, best first."""
        phrases = {phrase for form in self._forms for phrase in _list_phrases(form, found)}
        named: list[str] = []
        left = set(found)
        for phrase in sorted(phrases, key=_rank):
            words = _WORD.findall(_fold(phrase))
            if left.intersection(words):
                left.difference_update(words)
                named.append(phrase)
        return (named + sorted(left & embedded))[:MOST_NAMED]


def _list_phrases(form: _Form, found: set[str]) -> Iterable[str]:
    start = end = -1
    for match in _WORD.finditer(form.text):
        if _fold(match[0]) in found:
            is_near = match.start() - end <= _BETWEEN and match.end() - start <= MOST_PHRASE
            if start >= 0 and is_near:
                end = match.end()
                continue
            if start >= 0:
                yield _show(form.text[start:end])
            start, end = match.span()
    if start >= 0:
        yield _show(form.text[start:end])


def _show(phrase: str) -> str:
    return " ".join(phrase.replace("+", " ").replace("_", " ").split())


def _rank(phrase: str) -> tuple[bool, bool, int, str]:
    words = _WORD.findall(phrase)
    is_plain = not any(map(_is_distinctive, words))
    return (is_plain, len(words) < 3, -len(phrase), phrase)


def _choose_grouped(words: Iterable[str]) -> list[str]:
    """Return the longest distinctive words, which a text may have in groups."""
    distinctive = filter(_is_distinctive, words)
    by_length = sorted(distinctive, key=lambda word: (-len(word), word))
    return [word for word in by_length if len(word) >= _GROUPED][:_MOST_GROUPED]


def _list_pieces(text: str) -> set[str]:
    """Return all pieces of _GRAM characters, by which an embedded word is ruled out at once."""
    return {text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)}


def _make_form(text: str, is_hidden: bool) -> _Form:
    words = _WORD.findall(_fold(text))
    return _Form(text, is_hidden, words, "".join(words)[:MOST_ARGUMENTS])


def _fold(text: str) -> str:
    text = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return text.casefold()


def _is_notable(word: str) -> bool:
    return len(word) >= 4 or (len(word) == 3 and any(map(str.isdigit, word)))


def _is_distinctive(word: str) -> bool:
    return len(word) >= _GRAM and any(map(str.isdigit, word))


def _list_texts(value: Any) -> Iterable[str]:
    match value:
        case str():
            yield value
        case bool() | None:
            return
        case int() | float():
            yield str(value)
        case Mapping():
            for name, each in value.items():
                yield str(name)
                yield from _list_texts(each)
        case Sequence():
            for each in value:
                yield from _list_texts(each)
        case _:
            return
