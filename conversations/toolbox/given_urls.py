"""Decides whether others gave the model a URL, so that requesting it tells them nothing new.

Others are the person, who typed or attached it, and the authors of pages and servers. A text does
not count as the URL's source if the model could have put the URL there: the result of a failed
call, a file that the model can write, and a result after a call that carried the URL, or the words
of the path in it, because sites and servers repeat what they were asked. A call that did no more
than request a given URL leaves its result a source.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from conversations.models import Conversation
from conversations.toolbox.leaving_words import Arguments
from conversations.toolbox.sources import GivenArguments, SourceText, list_arguments, read_host

_PLAIN_PORTS = (":443", ":80")
#: Origins of calls that tell nobody but the person's own files or mailbox.
_OWN = ("workspace", "mail")


class GivenUrls:
    """The URLs in some texts of a conversation's path."""

    def __init__(self, conversation: Conversation, texts: Sequence[SourceText]) -> None:
        self._conversation = conversation
        self._texts = texts

    @cached_property
    def _calls(self) -> list[GivenArguments]:
        return list_arguments(self._conversation)

    def has(self, url: str, *, before: int = sys.maxsize, with_typed: bool = True) -> bool:
        """Return whether a text gave a URL to the answer `before`."""
        given = {
            each.given_at
            for each in self._texts
            if each.given_at is not None
            and each.given_at < before
            and (with_typed or each.source.origin != "typed")
            and url in each.text
        }
        if 0 in given or not given:
            return 0 in given
        carried = _Carried(url, self._texts)
        return any(not self._may_repeat(carried, at) for at in given)

    def _may_repeat(self, carried: _Carried, at: int) -> bool:
        """Return whether a text that came by a call of an answer may have the URL from a call."""
        return any(
            each.answer <= at
            # What a search of mail says again is in its own result alone.
            and (each.origin not in _OWN or each.answer == at)
            and self._tells(each, carried)
            for each in self._calls
        )

    def _tells(self, call: GivenArguments, carried: _Carried) -> bool:
        if not carried.is_in(call.arguments):
            return False
        url = call.arguments.get("url")
        host = read_host(url) if isinstance(url, str) else ""
        if not host:
            return True
        # The host of the URL knows already what it was asked itself.
        is_known = call.origin == "page" and host == carried.host
        if not is_known and not self.has(str(url), before=call.answer):
            return True
        return carried.is_in({name: one for name, one in call.arguments.items() if name != "url"})


class _Carried:
    """A URL and what it carries of the path, to be looked for in calls."""

    def __init__(self, url: str, texts: Sequence[SourceText]) -> None:
        self.host = read_host(url)
        self._domain = shorten_destination(self.host)
        given = Arguments({"url": url}, receiver=self._domain)
        private: list[str] = []
        telling = [url, unquote(url)]
        for each in texts:
            found = given.find(each.text, "")
            if each.source.is_private:
                private += [word for word, _ in found.words]
            if each.source.is_private or found.is_telling:
                telling += [word for word, _ in found.words]
        self._private, self._telling = "\n".join(private), "\n".join(telling)

    def is_in(self, arguments: Mapping[str, Any]) -> bool:
        """Return whether a call had words of it by no accident, or private ones and its domain."""
        given = Arguments(arguments, receiver=self._domain)
        if given.find(self._telling, "").is_telling:
            return True
        return given.repeats(self._domain) and bool(given.find(self._private, "").words)


def name_destination(destination: str) -> str:
    """Return the host of a destination without its usual port, or the name of a server."""
    for port in _PLAIN_PORTS:
        destination = destination.removesuffix(port)
    return destination.removeprefix("mcp:")


def shorten_destination(destination: str) -> str:
    """Return the part of a destination that cannot carry words: the domain without subdomains."""
    if destination.startswith("mail:"):
        return ""
    return ".".join(name_destination(destination).split(".")[-2:])
