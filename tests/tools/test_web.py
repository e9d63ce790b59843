"""Fetching from real servers: pinning, names, redirects, TLS, no leaks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.tools.certificates import issue
from tests.tools.resolvers import resolving
from tools.framework.errors import AddressRefusedError, FetchError, RedirectRefusedError
from tools.framework.outside_access import WebAccess
from tools.http import fetch
from tools.http.fetch import fetch_page, send_request
from tools.http.targets import parse_url

pytestmark = pytest.mark.asyncio

Reply = Callable[..., bytes]


async def test_an_opened_site_is_fetched_without_a_trace_of_us(serve: Any, reply: Reply) -> None:
    site = await serve(reply("hello", Content_Type="text/plain", Set_Cookie="a=b"))
    answer = await fetch_page(f"{site.url}/a%20b?c=d#secret", site.access)
    assert (answer.status, answer.body, answer.content_type) == (200, b"hello", "text/plain")
    assert answer.url == f"{site.url}/a%20b?c=d"
    head = site.heads[0].lower()
    assert head.startswith("get /a%20b?c=d http/1.1\r\n")
    assert f"host: 127.0.0.1:{site.port}\r\n" in head
    assert "secret" not in head
    assert "cookie" not in head
    assert "authorization" not in head
    assert "referer" not in head


async def test_the_environment_names_no_proxy(
    serve: Any, reply: Reply, canary: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{canary.port}")
    site = await serve(reply("direct"))
    assert (await fetch_page(site.url, site.access)).body == b"direct"
    assert canary.connections == 0


async def test_the_connection_goes_to_the_address_that_was_checked(
    serve: Any, reply: Reply
) -> None:
    site = await serve(reply("pinned"))
    asked: list[str] = []

    async def rebinding(host: str, _port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    pair = f"jobs.example:{site.port}"
    access = WebAccess(allowed_private=frozenset({pair}), resolve=rebinding)
    assert (await fetch_page(f"http://{pair}/", access)).body == b"pinned"
    assert asked == ["jobs.example"]
    assert f"Host: {pair}\r\n" in site.heads[0]


async def test_the_next_address_is_tried_when_one_does_not_connect(
    serve: Any, reply: Reply
) -> None:
    site = await serve(reply("second"))
    pair = f"jobs.example:{site.port}"
    access = WebAccess(frozenset({pair}), resolve=resolving("127.0.0.2", "127.0.0.1"))
    assert (await fetch_page(f"http://{pair}/", access)).body == b"second"


async def test_a_server_that_cannot_be_reached_is_said_so(serve: Any, reply: Reply) -> None:
    site = await serve(reply())
    pair = f"jobs.example:{site.port}"
    access = WebAccess(frozenset({pair}), resolve=resolving("127.0.0.2"))
    with pytest.raises(FetchError, match="could not be reached"):
        await fetch_page(f"http://{pair}/", access)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_inward_is_refused_at_the_hop(
    status: int, serve: Any, reply: Reply, canary: Any
) -> None:
    site = await serve(reply(status=f"{status} Go", Location=f"http://127.0.0.1:{canary.port}/"))
    access = replace(site.access, ports=frozenset({canary.port}))
    with pytest.raises(AddressRefusedError):
        await fetch_page(site.url, access)
    assert (site.connections, canary.connections) == (1, 0)


@pytest.mark.parametrize(
    "location",
    [
        *(
            "file:///etc/passwd",
            "//[::1]:{port}/",
            "http://user:x@127.0.0.1:{port}/",
            "http://[bad",
        ),
        *("http://2130706433:{port}/", "//localhost:{port}", "gopher://127.0.0.1:{port}/", "\\\\x"),
        "//169.254.169.254:{port}/latest/meta-data/",
    ],
)
async def test_a_redirect_to_nowhere_good_is_refused(
    location: str, serve: Any, reply: Reply, canary: Any
) -> None:
    site = await serve(reply(status="302 Go", Location=location.format(port=canary.port)))
    access = replace(site.access, ports=frozenset({canary.port}))
    with pytest.raises(AddressRefusedError):
        await fetch_page(site.url, access)
    assert canary.connections == 0


async def test_redirects_are_followed_to_the_end_and_told(serve: Any, reply: Reply) -> None:
    async def respond(path: str, writer: asyncio.StreamWriter) -> None:
        step = int(path.rsplit("/", 1)[1] or 0)
        last = reply("there", Set_Cookie="s=1")
        writer.write(
            reply(status="302 Go", Location=str(step + 1), Set_Cookie="s=1") if step < 5 else last
        )

    site = await serve(respond)
    answer = await fetch_page(f"{site.url}/jobs/", site.access)
    assert answer.body == b"there"
    assert answer.url == f"{site.url}/jobs/5"
    assert answer.hops[0] == f"{site.url}/jobs/"
    assert len(answer.hops) == 5
    assert not any("cookie" in head.lower() for head in site.heads)


@pytest.mark.parametrize("location", ["/", "/next"])
async def test_loops_and_long_chains_end(location: str, serve: Any, reply: Reply) -> None:
    site = await serve(reply(status="307 Go", Location=location))
    with pytest.raises(FetchError, match="more than 5 redirects"):
        await fetch_page(site.url, site.access)
    assert site.connections == 6


async def test_a_redirect_without_a_location_is_an_answer(serve: Any, reply: Reply) -> None:
    site = await serve(reply("nowhere", status="302 Found"))
    assert (await fetch_page(site.url, site.access)).status == 302


async def test_a_meta_refresh_is_not_followed(serve: Any, reply: Reply, canary: Any) -> None:
    page = f'<meta http-equiv=refresh content="0;url=http://127.0.0.1:{canary.port}/">'
    site = await serve(reply(page, Content_Type="text/html"))
    assert (await fetch_page(site.url, site.access)).status == 200
    assert canary.connections == 0


async def test_tls_asks_for_the_name_at_the_pinned_address(
    serve: Any, reply: Reply, tmp_path: Path
) -> None:
    server, client = issue(tmp_path, "jobs.example")
    names: list[str | None] = []
    server.sni_callback = lambda _socket, name, _context: names.append(name)
    site = await serve(reply("sealed"), tls=server)
    pair = f"jobs.example:{site.port}"
    access = WebAccess(frozenset({pair}), resolve=resolving("127.0.0.1"), tls=client)
    assert (await fetch_page(f"https://{pair}/", access)).body == b"sealed"
    assert names == ["jobs.example"]


@pytest.mark.parametrize("is_trusted", [True, False])
async def test_a_certificate_for_another_name_or_of_a_stranger_is_refused(
    is_trusted: bool, serve: Any, reply: Reply, tmp_path: Path
) -> None:
    server, client = issue(tmp_path, "other.example")
    site = await serve(reply("sealed"), tls=server)
    pair = f"jobs.example:{site.port}"
    access = WebAccess(
        frozenset({pair}), resolve=resolving("127.0.0.1"), tls=client if is_trusted else None
    )
    with pytest.raises(FetchError, match="certificate is not valid"):
        await fetch_page(f"https://{pair}/", access)
    assert site.heads == []


async def test_cancellation_passes_through(serve: Any) -> None:
    async def silent(_path: str, _writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    site = await serve(silent)
    task = asyncio.create_task(fetch_page(site.url, site.access))
    while not site.heads:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_after_private_reading_a_redirect_to_another_host_is_refused_by_name(
    serve: Any, reply: Reply
) -> None:
    there = await serve(reply("there"))
    here = await serve(reply(status="302 Go", Location=f"{there.url}/x"))
    access = WebAccess(here.access.allowed_private | there.access.allowed_private)
    assert (await fetch_page(here.url, access)).body == b"there"
    with pytest.raises(RedirectRefusedError) as refused:
        await fetch_page(here.url, replace(access, is_held_to_host=True))
    assert f"{there.url}/x" in str(refused.value)
    assert there.connections == 1


async def test_after_private_reading_a_redirect_on_the_host_is_followed(
    serve: Any, reply: Reply
) -> None:
    async def respond(path: str, writer: asyncio.StreamWriter) -> None:
        writer.write(reply("there") if path == "/b" else reply(status="302 Go", Location="/b"))

    site = await serve(respond)
    answer = await fetch_page(f"{site.url}/a", replace(site.access, is_held_to_host=True))
    assert answer.body == b"there"


@pytest.mark.parametrize(
    ("url", "there", "is_same"),
    [
        ("http://jobs.example/a", "https://jobs.example/b", True),
        ("http://jobs.example/a", "https://other.example/b", False),
        ("http://jobs.example/a", "https://jobs.example:8443/b", False),
        ("http://jobs.example:8080/a", "https://jobs.example/b", False),
    ],
)
async def test_after_private_reading_encryption_may_be_added(
    url: str, there: str, *, is_same: bool
) -> None:
    refused = None
    try:
        fetch._check_redirect(parse_url(url), parse_url(there), WebAccess(is_held_to_host=True))
    except RedirectRefusedError as error:
        refused = error
    assert (refused is None) is is_same


async def test_a_redirect_never_takes_the_encryption_away(
    serve: Any, reply: Reply, canary: Any, tmp_path: Path
) -> None:
    server, client = issue(tmp_path, "jobs.example")
    plain = f"http://jobs.example:{canary.port}/"
    site = await serve(reply(status="301 Go", Location=plain), tls=server)
    pairs = frozenset({f"jobs.example:{port}" for port in (site.port, canary.port)})
    access = WebAccess(pairs, resolve=resolving("127.0.0.1"), tls=client)
    with pytest.raises(RedirectRefusedError, match="no longer encrypted"):
        await fetch_page(f"https://jobs.example:{site.port}/", access)
    assert canary.connections == 0


async def test_a_request_with_a_body_is_sent_once_and_a_redirect_is_its_answer(
    serve: Any, reply: Reply, canary: Any
) -> None:
    there = f"http://127.0.0.1:{canary.port}/"
    site = await serve(reply(status="307 Go", Location=there, X_Said="yes"))
    answer = await send_request(
        "POST", site.url, site.access, headers={"Authorization": "Bearer t"}, content=b"grant=1"
    )
    assert (answer.status, answer.headers["location"], answer.headers["x-said"]) == (
        *(307, there),
        "yes",
    )
    assert site.heads[0].startswith("POST / HTTP/1.1\r\n")
    assert "authorization: bearer t\r\n" in site.heads[0].lower()
    assert (site.connections, canary.connections) == (1, 0)


async def test_a_request_with_a_body_has_the_same_walls(canary: Any) -> None:
    access = WebAccess(ports=frozenset({canary.port}))
    with pytest.raises(AddressRefusedError):
        await send_request("POST", f"http://127.1:{canary.port}/", access, content=b"secret")
    assert canary.connections == 0
