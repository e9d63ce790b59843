"""Proxies: what they say of a visitor counts if they are ours, and is dropped if not."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.handlers.asgi import ASGIRequest

from agentweb.edge import proxies
from agentweb.edge.proxies import apply_forwarded, read_networks
from agentweb.observability.metrics_page import may_see
from tests.edge.conftest import PROXY
from tests.edge.wire import Site, status

OURS = read_networks(("10.0.0.0/8", "2001:db8::/32", "192.0.2.7"))
NOBODY = read_networks(())
FOR, PROTO = b"x-forwarded-for", b"x-forwarded-proto"


def apply_headers(
    peer: str, *headers: tuple[bytes, bytes], trusted: Any = OURS
) -> tuple[str, list[Any]]:
    """Give who the visitor is, and what the application is told besides."""
    found = apply_forwarded(
        {"type": "http", "client": [peer, 5], "headers": list(headers)}, trusted
    )
    return found["client"][0], found["headers"]


@pytest.mark.parametrize(
    ("hops", "visitor"),
    [
        ("203.0.113.9", "203.0.113.9"), ("1.2.3.4, 203.0.113.9", "203.0.113.9"),
        ("203.0.113.9, 10.1.1.1", "203.0.113.9"), ("203.0.113.9:4711", "203.0.113.9"),
        ("1.2.3.4, 203.0.113.9, 192.0.2.7,10.9.9.9", "203.0.113.9"),
        ("[2001:db9::1]:443", "2001:db9::1"), ("2001:db9::1", "2001:db9::1"),
        ("::ffff:203.0.113.9", "203.0.113.9"), ("10.1.1.1", "10.1.1.1"), ("unknown", "10.0.0.1"),
        ("1.2.3.4, unknown", "10.0.0.1"), ("", "10.0.0.1"), (",", "10.0.0.1"),
        ("1.2.3.4, _hidden, 10.1.1.1", "10.1.1.1"),
        ("' OR 1=1", "10.0.0.1"), ("1.2.3.4\x00", "10.0.0.1"), ("1" * 10_000, "10.0.0.1"),
    ],
)  # fmt: skip
def test_the_visitor_is_the_last_address_that_is_not_ours(hops: str, visitor: str) -> None:
    assert apply_headers("10.0.0.1", (FOR, hops.encode("latin1")))[0] == visitor
    assert apply_headers("::ffff:10.0.0.1", (FOR, hops.encode("latin1")))[0] == visitor
    assert apply_headers("198.51.100.1", (FOR, hops.encode("latin1")))[0] == "198.51.100.1"
    assert apply_headers("10.0.0.1", (FOR, hops.encode("latin1")), trusted=NOBODY)[0] == "10.0.0.1"


def test_more_than_one_header_is_one_list() -> None:
    headers = (b"X-Forwarded-For", b"1.2.3.4"), (FOR, b"203.0.113.9"), (FOR, b"10.1.1.1")
    assert apply_headers("10.0.0.1", *headers)[0] == "203.0.113.9"


@pytest.mark.parametrize(
    ("peer", "trusted", "counts"),
    [
        ("10.0.0.1", OURS, True), ("127.0.0.1", OURS, True), ("::1", OURS, True),
        ("192.168.0.1", OURS, False), ("198.51.100.1", OURS, False),
        ("172.18.0.2", NOBODY, True), ("127.0.0.1", NOBODY, True), ("fd00::2", NOBODY, True),
        ("8.8.8.8", NOBODY, False), ("", NOBODY, False),
    ],
)  # fmt: skip
def test_the_scheme_counts_from_our_proxies_this_machine_and_else_private_networks(
    peer: str, trusted: Any, counts: bool
) -> None:
    host = (b"host", b"chat.example")
    expected = [host, (PROTO, b"https")] if counts else [host]
    assert apply_headers(peer, host, (PROTO, b"https"), trusted=trusted)[1] == expected
    # What the visitor wrote himself comes before what the proxy adds.
    assert (
        apply_headers(peer, host, (PROTO, b"http"), (PROTO, b"https"), trusted=trusted)[1]
        == expected
    )
    assert apply_headers(peer, host, (PROTO, b"http, https"), trusted=trusted)[1] == expected


def test_nothing_else_that_forwards_arrives() -> None:
    names = (
        b"X-Forwarded-Host", b"X-Forwarded-Port", b"X-Forwarded-Server", b"X-Forwarded-Prefix",
        b"X-Real-IP", b"Forwarded", b"Daphne-Root-Path", b"daphne-root-path",
    )  # fmt: skip
    for peer in ("10.0.0.1", "198.51.100.1", "127.0.0.1"):
        visitor, headers = apply_headers(peer, *((name, b"evil.example") for name in names))
        assert (visitor, headers) == (peer, [])


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Real-IP", "Forwarded"])
def test_through_a_proxy_that_is_not_named_nobody_is_this_machine(header: str) -> None:
    """It lends its own address to everybody, and what it says of them is dropped."""
    scope = {"type": "http", "method": "GET", "path": "/metrics", "client": ["127.0.0.1", 5]}
    host = (b"host", b"localhost")
    for headers, may in (([host], True), ([host, (header.encode(), b"203.0.113.9")], False)):
        found = apply_forwarded({**scope, "headers": headers}, NOBODY)
        assert may_see(ASGIRequest(found, BytesIO())) is may


def test_a_proxy_that_is_not_named_is_said_once_and_loudly(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxies, "_told", set())
    apply_headers("10.0.0.1", (FOR, b"203.0.113.9"))
    apply_headers("172.18.0.2", (PROTO, b"https"), trusted=NOBODY)
    assert not caplog.records
    for peer in ("172.18.0.2", "172.18.0.2", "172.18.0.3"):
        apply_headers(peer, (FOR, b"203.0.113.9"), trusted=NOBODY)
    [said] = caplog.records
    assert said.levelname == "WARNING"
    assert said.getMessage().startswith("AGENTWEB_TRUSTED_PROXIES IS NOT SET")
    assert "172.18.0.2" in said.getMessage()
    assert "203.0.113.9" not in said.getMessage()


@pytest.mark.parametrize("word", ["10.0.0.0/33", "proxy", "10.0.0", "*"])
def test_a_network_that_is_none_stops_the_start(word: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="AGENTWEB_TRUSTED_PROXIES: "):
        read_networks((word,))


async def log_in(site: Site, forwarded: str, source: str) -> int:
    body = b"username=nobody&password=wrong"
    lines = (
        "Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(body)}",
        f"X-CSRFToken: {site.visitor.cookies['csrftoken']}", f"X-Forwarded-For: {forwarded}",
        f"Forwarded: for={forwarded}", f"X-Real-IP: {forwarded}", "Connection: close",
    )  # fmt: skip
    # Without a session: who is logged in already is sent on.
    head = site.head("POST", "/accounts/login/", *lines).replace(b"sessionid=", b"nothing=")
    return status(await site.ask(head, body, source=source))


@pytest.mark.asyncio
async def test_a_made_up_address_is_no_way_round_the_limit_of_log_ins(site: Site) -> None:
    tries = [await log_in(site, f"203.0.113.{number}", "127.0.0.1") for number in range(7)]
    assert tries[0] == 200
    assert tries[-1] == 429
    assert await log_in(site, "203.0.113.77", PROXY) == 200
