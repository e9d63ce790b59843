"""Pages kept for a while, so that one read in parts, or asked for twice, is loaded once.

Each person has a shelf of their own: what one was shown never reaches another. A shelf is bounded
in bytes and age, lies in the memory of one process and is gone with it; a turn that goes on in
another process loads the page again, which costs a request and nothing else. Only the text is kept,
of answers to requests that carry no password. What the site says counts: `no-store` is not kept,
`no-cache` is asked about each time, and without a word the site is asked whether it has changed. To
be read on (from a later character) a page comes from the copy it was begun with.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

#: Nothing is kept longer, whatever the site says.
LONGEST = timedelta(minutes=10)
MOST_CACHES = 20
#: What a page takes besides its text.
FRAME = 1_000
DIRECTIVE = re.compile(r'([a-z-]+)\s*(?:=\s*"?([^",]*)"?)?', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageText:
    """A page as it was read: its text, and what to say of it."""

    url: str
    status: int
    kind: str
    content_type: str
    size: int
    hops: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class CachedPage:
    reading: PageText
    since: datetime
    #: Until then the site need not be asked.
    fresh_until: datetime
    #: What it is asked with afterwards: If-None-Match or If-Modified-Since.
    conditions: Mapping[str, str]
    #: Bytes it takes on a shelf.
    size: int


def cache_page(reading: PageText, headers: Mapping[str, str], now: datetime) -> CachedPage | None:
    """Make a copy to keep; None where the site says that there must be none."""
    said = _parse_directives(headers.get("cache-control", ""))
    if reading.status != 200 or "no-store" in said or "*" in headers.get("vary", ""):
        return None
    fresh = min(_compute_lifetime(said, headers, now), LONGEST)
    asked = {
        "If-None-Match": headers.get("etag", ""),
        "If-Modified-Since": headers.get("last-modified", ""),
    }
    # A redirect may lead elsewhere next time, and what was said of one page is not of another.
    conditions = {} if reading.hops else {name: said for name, said in asked.items() if said}
    return CachedPage(reading, now, now + fresh, conditions, FRAME + len(reading.text.encode()))


@dataclass(slots=True)
class PageCache:
    """One person's pages; `most` bytes of them."""

    most: int
    _pages: OrderedDict[str, CachedPage] = field(default_factory=OrderedDict)

    def find(self, url: str, now: datetime) -> CachedPage | None:
        for old in [each for each, page in self._pages.items() if now - page.since > LONGEST]:
            del self._pages[old]
        if url in self._pages:
            self._pages.move_to_end(url)
        return self._pages.get(url)

    def keep(self, url: str, page: CachedPage | None) -> None:
        """Put a page in the place of the one before; None only takes that away."""
        self._pages.pop(url, None)
        if page is None or page.size > self.most:
            return
        self._pages[url] = page
        while self.size > self.most:
            self._pages.popitem(last=False)

    def confirm(self, url: str, headers: Mapping[str, str], now: datetime) -> None:
        """Take over what the site says of a page that has not changed."""
        old = self._pages.get(url)
        if old is None:  # another call took it away meanwhile
            return
        new = cache_page(old.reading, headers, now)
        self.keep(url, new and replace(new, conditions={**old.conditions, **new.conditions}))

    @property
    def size(self) -> int:
        return sum(page.size for page in self._pages.values())


@dataclass(slots=True)
class PageCaches:
    """The shelves of the people who last read pages in this process."""

    _shelves: OrderedDict[str, PageCache] = field(default_factory=OrderedDict)

    def of(self, user_id: str, most: int) -> PageCache:
        shelf = self._shelves.setdefault(user_id, PageCache(most))
        shelf.most = most
        self._shelves.move_to_end(user_id)
        while len(self._shelves) > MOST_CACHES:
            self._shelves.popitem(last=False)
        return shelf


def _parse_directives(text: str) -> dict[str, str]:
    return {name.lower(): value.strip() for name, value in DIRECTIVE.findall(text[:1_000])}


def _compute_lifetime(
    said: Mapping[str, str], headers: Mapping[str, str], now: datetime
) -> timedelta:
    if "no-cache" in said:
        return timedelta()
    if "max-age" in said:
        return timedelta(
            seconds=max(0, _parse_number(said["max-age"]) - _parse_number(headers.get("age", "")))
        )
    try:
        expires = parsedate_to_datetime(headers.get("expires", ""))
    except (ValueError, OverflowError):
        return timedelta()
    expires = expires if expires.tzinfo else expires.replace(tzinfo=UTC)
    return max(expires - now, timedelta())


def _parse_number(text: str) -> int:
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 10 else 0
