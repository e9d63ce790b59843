"""A cache of pages: a page that is read in parts, or requested twice, is loaded once.

Each person has their own cache, so nothing one person fetched reaches another. It is bounded in
bytes and age and held in the memory of one process; a turn that continues in another process loads
the page again, which costs only a request. Only the text is stored, and only of answers to requests
without a password. The site's headers are obeyed: `no-store` is not cached; `no-cache` and answers
without a lifetime are revalidated each time. Reading on (from a later character) uses the copy that
the earlier parts came from, as long as it is cached.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from threading import Lock

#: The longest age of a copy, whatever the site allows.
LONGEST = timedelta(minutes=10)
MOST_CACHES = 20
#: Bytes that a copy takes besides its text.
OVERHEAD = 1_000
DIRECTIVE = re.compile(r'([a-z-]+)\s*(?:=\s*"?([^",]*)"?)?', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageText:
    """The text of a page and the facts of its HTTP answer."""

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
    #: until then the copy is used without a request
    fresh_until: datetime
    #: headers for revalidation: If-None-Match or If-Modified-Since
    conditions: Mapping[str, str]
    #: bytes it takes in a cache
    size: int


def cache_page(reading: PageText, headers: Mapping[str, str], now: datetime) -> CachedPage | None:
    """Make a copy of a page; None if it may not be stored."""
    directives = _parse_directives(headers.get("cache-control", ""))
    if reading.status != 200 or "no-store" in directives or "*" in headers.get("vary", ""):
        return None
    fresh = min(_compute_lifetime(directives, headers, now), LONGEST)
    validators = {
        "If-None-Match": headers.get("etag", ""),
        "If-Modified-Since": headers.get("last-modified", ""),
    }
    # A redirect may lead to another page next time, for which these conditions would be wrong.
    conditions = (
        {} if reading.hops else {name: value for name, value in validators.items() if value}
    )
    return CachedPage(reading, now, now + fresh, conditions, OVERHEAD + len(reading.text.encode()))


@dataclass(slots=True)
class PageCache:
    """The pages of one person, at most `most` bytes."""

    most: int
    _pages: OrderedDict[str, CachedPage] = field(default_factory=OrderedDict)
    #: each tool call has a thread of its own
    _lock: Lock = field(default_factory=Lock)

    def find(self, url: str, now: datetime) -> CachedPage | None:
        with self._lock:
            return self._find(url, now)

    def _find(self, url: str, now: datetime) -> CachedPage | None:
        for old in [each for each, page in self._pages.items() if now - page.since > LONGEST]:
            del self._pages[old]
        if url in self._pages:
            self._pages.move_to_end(url)
        return self._pages.get(url)

    def keep(self, url: str, page: CachedPage | None) -> None:
        """Replace the copy of a page; None only removes it."""
        with self._lock:
            self._pages.pop(url, None)
            if page is None or page.size > self.most:
                return
            self._pages[url] = page
            while self.size > self.most:
                self._pages.popitem(last=False)

    def confirm(self, url: str, headers: Mapping[str, str], now: datetime) -> None:
        """Renew the copy of a page that has not changed, by the headers of the 304."""
        old = self._pages.get(url)
        if old is None:  # removed by another call meanwhile
            return
        new = cache_page(old.reading, headers, now)
        self.keep(url, new and replace(new, conditions={**old.conditions, **new.conditions}))

    @property
    def size(self) -> int:
        return sum(page.size for page in self._pages.values())


@dataclass(slots=True)
class PageCaches:
    """The caches of the people who most recently read pages in this process."""

    _caches: OrderedDict[str, PageCache] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def of(self, user_id: str, most: int) -> PageCache:
        with self._lock:
            cache = self._caches.setdefault(user_id, PageCache(most))
            cache.most = most
            self._caches.move_to_end(user_id)
            while len(self._caches) > MOST_CACHES:
                self._caches.popitem(last=False)
        return cache


def _parse_directives(text: str) -> dict[str, str]:
    return {name.lower(): value.strip() for name, value in DIRECTIVE.findall(text[:1_000])}


def _compute_lifetime(
    directives: Mapping[str, str], headers: Mapping[str, str], now: datetime
) -> timedelta:
    if "no-cache" in directives:
        return timedelta()
    if "max-age" in directives:
        return timedelta(
            seconds=max(
                0, _parse_number(directives["max-age"]) - _parse_number(headers.get("age", ""))
            )
        )
    try:
        expires = parsedate_to_datetime(headers.get("expires", ""))
    except (ValueError, OverflowError):
        return timedelta()
    expires = expires if expires.tzinfo else expires.replace(tzinfo=UTC)
    return max(expires - now, timedelta())


def _parse_number(text: str) -> int:
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 10 else 0
