"""What a call would carry of what was typed or read on the path: the texts compared with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from conversations.models import Conversation
from conversations.toolbox.disguises import is_unclear
from conversations.toolbox.given_urls import GivenUrls, name_destination, shorten_destination
from conversations.toolbox.leaving_words import MOST_NAMED, Arguments, LeavingWords
from conversations.toolbox.sources import (
    Source,
    SourceText,
    iterate_texts,
    list_typed,
    read_host,
)


class InformationFlow:
    """The texts of one conversation's path, read when a call is compared first."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    @cached_property
    def _watched(self) -> list[SourceText]:
        texts = iterate_texts(self._conversation, with_pdfs=False)
        return [each for each in texts if not each.source.is_private]

    @cached_property
    def _all(self) -> list[SourceText]:
        return list(iterate_texts(self._conversation, with_pdfs=True))

    @cached_property
    def _said(self) -> list[str]:
        return list_typed(self._conversation, has_run=True)

    @cached_property
    def _given(self) -> GivenUrls:
        return GivenUrls(self._conversation, self._watched)

    def list_telling(self, arguments: Mapping[str, Any], destination: str = "") -> tuple[str, ...]:
        """Return the watched sources whose words a call carries by no accident, or may carry.

        What a person typed may go to a host or server that they mentioned, in whatever form. ""
        is anybody, such as the unknown end of a redirect.
        """
        if self._is_published(arguments.get("url"), destination):
            arguments = {name: value for name, value in arguments.items() if name != "url"}
        given = Arguments(arguments, receiver=shorten_destination(destination))
        name = name_destination(destination)
        is_mentioned = destination != "" and any(map(_compile_mention(name).search, self._said))
        found = [
            each.source.key
            for each in self._watched
            if not (is_mentioned and each.source.origin == "typed")
            and not _is_origin(each.source, destination)
            and (not each.is_whole or given.find(each.text, each.source.key).is_telling)
        ]
        return tuple(dict.fromkeys(found))

    def list_words(
        self, arguments: Mapping[str, Any], destination: str
    ) -> tuple[tuple[str, str], ...]:
        """Return the words of all sources that a call carries, private ones first."""
        return _name_words(found for _, found in self._compare(arguments, destination))

    def check_link(self, url: str) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
        """Return the words that opening a link in an answer would tell its site, each with its
        source, and the sources that could not be compared whole.

        Words of what is not private count where they are there by no accident, as in a call.
        """
        if GivenUrls(self._conversation, self._all).has(url):
            return (), ()
        # An address that the tools' parser refuses has no host here whose own words are spared.
        compared = self._compare({"url": url}, read_host(url))
        words = [found for source, found in compared if source.is_private or found.is_telling]
        unread = [each.source.key for each in self._all if not each.is_whole]
        unread += ["hidden:"] if is_unclear(unquote(url)) else []
        return _name_words(words), tuple(dict.fromkeys(unread))

    def _is_published(self, url: object, destination: str) -> bool:
        """Return whether a page or a server's result gave a URL, and its own host gets it."""
        if not isinstance(url, str) or not (host := read_host(url)):
            return False
        return destination in ("", host) and self._given.has(url, with_typed=False)

    def _compare(
        self, arguments: Mapping[str, Any], destination: str
    ) -> Iterator[tuple[Source, LeavingWords]]:
        """Yield what a call carries of each source that it does not go back to, private first."""
        given = Arguments(arguments, receiver=shorten_destination(destination))
        for each in sorted(self._all, key=lambda one: not one.source.is_private):
            if not _is_origin(each.source, destination):
                yield each.source, given.find(each.text, each.source.key)


def _name_words(compared: Iterable[LeavingWords]) -> tuple[tuple[str, str], ...]:
    found: dict[str, tuple[str, str]] = {}
    for each in compared:
        for word, source in each.words:
            found.setdefault(word.casefold(), (word, source))
    return tuple(found.values())[:MOST_NAMED]


def _is_origin(source: Source, destination: str) -> bool:
    """Return whether words of a source would go back to where they came from."""
    match source.origin:
        case "page":
            return source.name != "" and source.name == destination
        case "mcp":
            return f"mcp:{source.name}" == destination
        case _:
            return False


def _compile_mention(name: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?<![^\W_])(?<![.-]){re.escape(name)}(?![^\W_])(?!-|\.[^\W_])", re.IGNORECASE
    )
