"""What is cached of pages, how long and for whom, by the headers of the site."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tools.http.page_cache import (
    LONGEST,
    MOST_CACHES,
    OVERHEAD,
    CachedPage,
    PageCache,
    PageCaches,
    PageText,
    cache_page,
)

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def reading(text: str = "page", status: int = 200, hops: tuple[str, ...] = ()) -> PageText:
    return PageText("http://a.example/", status, "text/html", "text/html", 9, hops, text)


def fresh(**headers: str) -> timedelta | None:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    copy = cache_page(reading(), named, NOW)
    return None if copy is None else copy.fresh_until - NOW


def copy_of(text: str) -> CachedPage:
    copy = cache_page(reading(text), {"cache-control": "max-age=60"}, NOW)
    assert copy is not None
    return copy


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0),
        ({"cache_control": "max-age=60"}, 60),
        ({"cache_control": "private, max-age=60"}, 60),
        ({"cache_control": 'MAX-AGE="60"'}, 60),
        ({"cache_control": "max-age=60", "age": "45"}, 15),
        ({"cache_control": "max-age=60", "age": "99"}, 0),
        ({"cache_control": "max-age=99999"}, 600),
        ({"cache_control": "max-age=" + "9" * 40}, 0),
        ({"expires": "Mon, 01 Jan 99999999999999999999 00:00:00 GMT"}, 0),
        ({"expires": "Mon, 01 Jan 2030 00:00:00 +99999999999999999999"}, 0),
        ({"cache_control": "max-age=-5"}, 0),
        ({"cache_control": "no-cache, max-age=60"}, 0),
        ({"cache_control": "max-age=0", "expires": "Sun, 22 Nov 2026 12:05:00 GMT"}, 0),
        ({"expires": "Sun, 22 Nov 2026 12:05:00 GMT"}, 300),
        ({"expires": "Sun, 22 Nov 2026 11:05:00 GMT"}, 0),
        ({"expires": "0"}, 0),
        ({"expires": "Sun, 99 Nov 2026 12:05:00 GMT"}, 0),
        ({"expires": "Sun, 22 Nov 2026 12:05:00"}, 300),
    ],
)
def test_a_page_is_fresh_as_long_as_its_site_says_and_never_long(
    headers: dict[str, str], seconds: int
) -> None:
    assert fresh(**headers) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "headers",
    [
        {"cache_control": "no-store"},
        {"cache_control": "max-age=60, NO-STORE"},
        {"cache_control": "max-age=60", "vary": "*"},
        {"cache_control": "max-age=60", "vary": "accept, *"},
    ],
)
def test_what_must_not_be_stored_is_not_kept(headers: dict[str, str]) -> None:
    assert fresh(**headers) is None


@pytest.mark.parametrize("status", [201, 301, 404, 500])
def test_only_a_plain_success_is_kept(status: int) -> None:
    assert cache_page(reading(status=status), {"cache-control": "max-age=60"}, NOW) is None


def test_what_was_redirected_is_not_asked_about_again() -> None:
    tags = {"etag": '"1"', "last-modified": "Sun, 22 Nov 2026 11:05:00 GMT"}
    direct, turned = (cache_page(reading(hops=hops), tags, NOW) for hops in ((), ("http://b/",)))
    assert direct is not None
    assert dict(direct.conditions) == {
        "If-None-Match": '"1"',
        "If-Modified-Since": "Sun, 22 Nov 2026 11:05:00 GMT",
    }
    assert turned is not None
    assert not turned.conditions


def test_a_shelf_never_holds_more_bytes_than_it_may() -> None:
    cache = PageCache(3 * OVERHEAD + 1_000)
    for number in range(50):
        cache.keep(f"http://a.example/{number}", copy_of("é" * (number * 7)))
        assert cache.size <= cache.most
    assert cache.find("http://a.example/0", NOW) is None
    assert cache.find("http://a.example/49", NOW) is not None


def test_what_is_larger_than_the_shelf_leaves_the_others_alone() -> None:
    cache = PageCache(2 * OVERHEAD)
    cache.keep("small", copy_of("x"))
    cache.keep("large", copy_of("x" * 5_000))
    assert cache.find("small", NOW) is not None
    assert cache.find("large", NOW) is None


def test_what_was_read_last_stays_longest() -> None:
    cache = PageCache(2 * OVERHEAD + 100)
    cache.keep("a", copy_of("x"))
    cache.keep("b", copy_of("x"))
    assert cache.find("a", NOW) is not None
    cache.keep("c", copy_of("x"))
    assert [name for name in "abc" if cache.find(name, NOW)] == ["a", "c"]


def test_nothing_is_older_than_the_longest_age() -> None:
    cache = PageCache(9_999)
    cache.keep("a", copy_of("x"))
    assert cache.find("a", NOW + LONGEST) is not None
    assert cache.find("a", NOW + LONGEST + timedelta(seconds=1)) is None
    assert cache.size == 0


def test_a_shelf_of_no_bytes_keeps_nothing() -> None:
    cache = PageCache(0)
    cache.keep("a", copy_of(""))
    assert cache.find("a", NOW) is None


def test_a_new_page_that_must_not_be_kept_takes_the_old_one_away() -> None:
    cache = PageCache(9_999)
    cache.keep("a", copy_of("x"))
    cache.keep("a", None)
    assert cache.find("a", NOW) is None


def test_a_page_that_another_call_took_away_is_not_confirmed() -> None:
    cache = PageCache(10_000)
    cache.confirm("http://a.example/", {"cache-control": "max-age=60"}, NOW)
    assert cache.find("http://a.example/", NOW) is None


def test_people_have_shelves_of_their_own_and_few_of_them_are_held() -> None:
    shelves = PageCaches()
    shelves.of("1", 9_999).keep("a", copy_of("secret"))
    assert shelves.of("2", 9_999).find("a", NOW) is None
    assert shelves.of("1", 9_999).find("a", NOW) is not None
    for number in range(MOST_CACHES):
        shelves.of(f"other {number}", 9_999)
    assert shelves.of("1", 9_999).find("a", NOW) is None
