"""Tables S55, S56 and the rest of the SSRF set: refused before a connection is made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.tools.resolvers import resolving
from tests.tools.spellings import INSIDE, LOOPBACK_IN_EVERY_SPELLING
from tools.framework.errors import AddressRefusedError
from tools.framework.outside_access import WebAccess
from tools.http.fetch import fetch_page
from tools.http.resolve import resolve_by_system
from tools.http.targets import Target, parse_url, resolve_target

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("host", LOOPBACK_IN_EVERY_SPELLING + INSIDE)
async def test_no_spelling_of_an_inner_address_is_connected_to(host: str, canary: Any) -> None:
    access = WebAccess(ports=frozenset({canary.port}), deadline=3)
    with pytest.raises(AddressRefusedError):
        await fetch_page(f"http://{host}:{canary.port}/", access)
    assert canary.connections == 0


@pytest.mark.parametrize(
    "url",
    [
        *("", " ", "x", "//127.0.0.1/", "/etc/passwd", "http:", "http://", "http:///x", "http:x"),
        *("file:///etc/passwd", "ftp://example.com/", "gopher://example.com/", "data:text/html,x"),
        *("javascript:alert(1)", "ws://example.com/", "HTTP+UNIX://x/", "http://a\\@127.0.0.1/"),
        *("http://user@example.com/", "http://user:pass@example.com/", "http://:x@example.com/"),
        *("http://example.com:22/", "http://example.com:25/", "http://example.com:6379/"),
        *("http://example.com:0/", "http://example.com:99999/", "http://example.com:-1/"),
        *(
            "http://exa mple.com/",
            "http://exa\tmple.com/",
            "http://exa\r\nmple.com/",
            "http://[::1/",
        ),
        *(
            "http://example.com/\r\nX: y",
            "http://example.com/\0",
            "http://-%-/",
            "http://\ud800.com/",
        ),
        *("http://..../", "http://a..b/", "http://" + "a" * 64 + ".com/", "http://" + "a." * 130),
        "http://example.com/" + "a" * 5_000,
    ],
)
async def test_a_url_that_is_not_a_plain_web_address_is_refused(url: str) -> None:
    with pytest.raises(AddressRefusedError):
        await fetch_page(url, WebAccess(resolve=resolving("8.8.8.8"), deadline=2))


async def test_what_is_refused_is_said_without_the_password() -> None:
    with pytest.raises(AddressRefusedError) as refused:
        await fetch_page("http://user:hunter2@example.com/", WebAccess())
    assert "hunter2" not in str(refused.value)


async def aimed(url: str, *addresses: str, **changes: Any) -> Target:
    return await resolve_target(parse_url(url), WebAccess(resolve=resolving(*addresses), **changes))


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["8.8.8.8", "127.0.0.1"],
        ["127.0.0.1", "8.8.8.8"],
        ["2606:4700::1111", "::1"],
        ["fe80::1%eth0"],
        ["not an address"],
        [],
    ],
)
async def test_a_name_is_refused_when_any_of_its_addresses_is(addresses: list[str]) -> None:
    with pytest.raises(AddressRefusedError):
        await aimed("http://example.com/", *addresses)


async def test_a_public_name_keeps_its_name_for_tls_and_its_addresses_for_the_connection() -> None:
    target = await aimed("https://Example.com./a?b#c", "8.8.8.8", "2606:4700::1111")
    assert target.name == "example.com"
    assert target.addresses == ("8.8.8.8", "2606:4700::1111")
    assert str(target.url) == "https://example.com./a?b"


@pytest.mark.parametrize(
    ("host", "address"), [("8.8.8.8", "8.8.8.8"), ("[2606:4700::1]", "2606:4700::1")]
)
async def test_a_public_address_in_the_url_is_its_own_name(host: str, address: str) -> None:
    target = await aimed(f"http://{host}/", address)
    assert (target.name, target.addresses) == (None, (address,))


async def test_only_so_many_addresses_are_tried() -> None:
    target = await aimed("http://example.com/", *(f"8.8.8.{last}" for last in range(50)))
    assert len(target.addresses) == 4


async def test_an_international_name_is_asked_for_in_its_ascii_form() -> None:
    assert (await aimed("http://bücher.example/", "8.8.8.8")).name == "xn--bcher-kva.example"


@pytest.mark.parametrize("port", [80, 443, 8000, 8080, 8443, 8999])
async def test_web_ports_are_open(port: int) -> None:
    assert await aimed(f"http://example.com:{port}/", "8.8.8.8")


async def test_names_and_networks_can_be_closed() -> None:
    with pytest.raises(AddressRefusedError, match="public internet"):
        await aimed(
            "http://chat.example.com/", "8.8.8.8", denied_hosts=frozenset({"chat.example.com"})
        )
    with pytest.raises(AddressRefusedError, match="closed"):
        await aimed("http://example.com/", "8.8.8.8", denied_networks=("8.8.0.0/16",))


async def test_an_opened_pair_opens_that_host_and_port_alone() -> None:
    opened = frozenset({"jobs.local:9123", "[::1]:9123"})
    assert await aimed("http://jobs.local:9123/", "127.0.0.1", allowed_private=opened)
    assert await aimed("http://jobs.local:9123/", "8.8.8.8", allowed_private=opened)
    assert await aimed("http://[::1]:9123/", allowed_private=opened)
    for url in ("http://jobs.local:8124/", "http://other.local:9123/", "http://127.0.0.1:9123/"):
        with pytest.raises(AddressRefusedError):
            await aimed(url, "127.0.0.1", allowed_private=opened)


@pytest.mark.parametrize("address", ["169.254.169.254", "fd00:ec2::254", "0.0.0.0", "224.0.0.1"])
async def test_an_opened_pair_never_opens_metadata(address: str) -> None:
    with pytest.raises(AddressRefusedError):
        await aimed("http://jobs:80/", address, allowed_private=frozenset({"jobs:80"}))


async def test_a_public_address_of_this_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # No machine that runs this has a known public address, so loopback is declared public here.
    monkeypatch.setattr("tools.http.addresses.NOT_PUBLIC", ())
    with pytest.raises(AddressRefusedError):
        await aimed("http://example.com/", "127.0.0.1")


async def test_the_default_access_opens_nothing_private() -> None:
    access = WebAccess()
    assert access.allowed_private == frozenset()
    assert replace(access).resolve is resolve_by_system


async def test_the_system_resolver_answers_once_per_address() -> None:
    assert await resolve_by_system("127.0.0.1", 80) == ["127.0.0.1"]
    assert await resolve_by_system("no-such-host.invalid", 80) == []
    assert await resolve_by_system("bücher", 80) == []
