"""The guard under any client: every hop and every connection is checked."""

from __future__ import annotations

import asyncio
import gzip
import re
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.tools.certificates import issue
from tests.tools.resolvers import resolving
from tests.tools.spellings import INNER_ADDRESSES, INSIDE, LOOPBACK_IN_EVERY_SPELLING, spellings
from tools.framework.errors import AddressRefusedError, BodyRefusedError, FetchError, ToolError
from tools.framework.outside_access import WebAccess
from tools.http.transport import GuardedTransport

pytestmark = pytest.mark.asyncio

Reply = Callable[..., bytes]


def guarded_client(access: WebAccess, headers: dict[str, str] | None = None) -> httpx2.AsyncClient:
    """Make a client of the library behind the guard, as those that use it do."""
    return httpx2.AsyncClient(
        transport=GuardedTransport(access), headers=headers, trust_env=False, timeout=30
    )


async def refused(url: str, access: WebAccess) -> bool:
    async with guarded_client(access) as client:
        try:
            await client.post(url, content=b"secret", headers={"Authorization": "Bearer secret"})
        except (AddressRefusedError, httpx2.InvalidURL):
            return True
    return False


@pytest.mark.parametrize("host", LOOPBACK_IN_EVERY_SPELLING + INSIDE)
async def test_no_spelling_of_an_inner_address_is_connected_to(host: str, canary: Any) -> None:
    access = WebAccess(ports=frozenset({canary.port}))
    assert await refused(f"http://{host}:{canary.port}/", access)
    assert canary.connections == 0


@pytest.mark.parametrize("address", INNER_ADDRESSES)
async def test_no_family_of_spellings_gets_through(address: str, canary: Any) -> None:
    access = WebAccess(ports=frozenset({canary.port}))
    hosts = [*spellings(address)]
    through = [host for host in hosts if not await refused(f"http://{host}:{canary.port}/", access)]
    assert len(hosts) > 300
    assert through == []
    assert canary.connections == 0


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://example.com@{inner}/",
            "http://example.com:80@{inner}/",
            "http://{inner}#@8.8.8.8",
        ),
        *("http://{inner}?@example.com/", "http://{inner}\\@example.com/", "http:///{inner}/"),
        *("http://example.com\\@{inner}/", "http://example.com%40{inner}/", "http://{inner}%2f/"),
        *("http://a:b@{inner}/", "http://@{inner}/", "http://:@{inner}/", "https://{inner}/"),
        *("http://{inner}%00.example.com/", "http://{inner}%20/", "http://{inner}%09/"),
        *("http://{inner}.:80/", "HTTP://{inner}/", "http:\\\\{inner}\\", "http://[{inner}]/"),
        *("ftp://{inner}/", "ws://{inner}/", "file://{inner}/etc/passwd", "gopher://{inner}/_x"),
    ],
)
async def test_no_trick_with_the_parts_of_a_url_reaches_inside(url: str, canary: Any) -> None:
    access = WebAccess(ports=frozenset({80, 443, canary.port}), resolve=resolving("127.0.0.1"))
    with pytest.raises((ToolError, httpx2.InvalidURL)):
        async with guarded_client(access) as client:
            await client.get(url.format(inner=f"127.0.0.1:{canary.port}"))
    assert canary.connections == 0


@pytest.mark.parametrize(
    "port", [0, 1, 21, 22, 25, 53, 110, 143, 993, 3306, 5432, 6379, 9200, 11211]
)
async def test_ports_of_other_services_are_closed(port: int) -> None:
    assert await refused(f"http://example.com:{port}/", WebAccess(resolve=resolving("8.8.8.8")))


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize(
    "inner", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "fe80::1%lo", "10.0.0.9"]
)
async def test_a_name_with_one_inner_address_among_public_ones_is_refused(
    place: int, inner: str, canary: Any
) -> None:
    answers = ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "9.9.9.9"]
    answers.insert(place, inner)
    access = WebAccess(ports=frozenset({canary.port}), resolve=resolving(*answers))
    assert await refused(f"http://jobs.example:{canary.port}/", access)
    assert canary.connections == 0


async def test_an_alias_is_judged_by_where_it_ends(canary: Any) -> None:
    aliases = {"jobs.example": "cdn.example", "cdn.example": "inner.example"}

    async def resolve(host: str, _port: int) -> list[str]:
        while host in aliases:
            host = aliases[host]
        return ["127.0.0.1"] if host == "inner.example" else ["8.8.8.8"]

    access = WebAccess(ports=frozenset({canary.port}), resolve=resolve)
    for name in ("jobs.example", "JOBS.example", "jobs.example."):
        assert await refused(f"http://{name}:{canary.port}/", access)
    assert canary.connections == 0


async def test_a_name_that_changes_its_mind_is_asked_once_per_request(
    serve: Any, reply: Reply, canary: Any
) -> None:
    site = await serve(reply("first"))
    asked: list[str] = []

    async def rebinding(host: str, _port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    pair = f"jobs.example:{site.port}"
    access = WebAccess(allowed_private=frozenset({pair}), resolve=rebinding)
    async with guarded_client(access) as client:
        assert (await client.get(f"http://{pair}/")).text == "first"
        with pytest.raises(AddressRefusedError):
            await client.get(f"http://{pair}/")
    assert asked == ["jobs.example"] * 2
    assert site.connections == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_client_that_follows_comes_through_the_guard_again(
    status: int, serve: Any, reply: Reply, canary: Any
) -> None:
    site = await serve(reply(status=f"{status} Go", Location=f"http://127.1:{canary.port}/"))
    access = replace(site.access, ports=frozenset({canary.port}))
    async with httpx2.AsyncClient(
        transport=GuardedTransport(access), follow_redirects=True
    ) as client:
        with pytest.raises(AddressRefusedError):
            await client.get(site.url)
    assert (site.connections, canary.connections) == (1, 0)


async def test_a_redirect_is_an_answer_to_the_guarded_client(serve: Any, reply: Reply) -> None:
    site = await serve(reply(status="307 Go", Location="/else"))
    async with guarded_client(site.access) as client:
        assert (await client.post(site.url, content=b"x")).status_code == 307
    assert site.connections == 1


async def test_what_is_sent_arrives_and_the_host_header_is_ours(serve: Any, reply: Reply) -> None:
    site = await serve(reply("ok", Content_Type="application/json"))
    forged = {"Host": "inner.local", "Authorization": "Bearer t", "Accept-Encoding": "br, zstd"}
    async with guarded_client(site.access, headers=forged) as client:
        await client.request("PUT", f"{site.url}/a?b=c", json={"n": 1})
    head = site.heads[0]
    assert head.startswith("PUT /a?b=c HTTP/1.1\r\n")
    assert f"Host: 127.0.0.1:{site.port}\r\n" in head
    assert "inner.local" not in head
    assert "Authorization: Bearer t\r\n" in head
    assert "accept-encoding: gzip\r\n" in head.lower()


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "x" * 40])
async def test_methods_that_are_not_requests_for_something_are_refused(
    method: str, serve: Any, reply: Reply
) -> None:
    site = await serve(reply("ok"))
    async with guarded_client(site.access) as client:
        with pytest.raises(AddressRefusedError, match="method"):
            await client.request(method, site.url)
    assert site.connections == 0


async def test_a_caller_cannot_turn_the_request_elsewhere(serve: Any, reply: Reply) -> None:
    site = await serve(reply("ok"))
    async with guarded_client(site.access) as client:
        tricks = {"target": b"http://other.example/", "sni_hostname": "other.example"}
        await client.get(f"{site.url}/here", extensions=tricks)
    assert site.heads[0].startswith("GET /here HTTP/1.1\r\n")


async def test_the_environment_names_no_proxy(
    serve: Any, reply: Reply, canary: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{canary.port}")
    site = await serve(reply("direct"))
    async with guarded_client(site.access) as client:
        assert (await client.get(site.url)).text == "direct"
    assert canary.connections == 0


async def test_names_that_share_an_address_never_share_a_connection(
    serve: Any, reply: Reply, tmp_path: Path
) -> None:
    server, client_tls = issue(tmp_path, "jobs.example", "mail.example")
    names: list[str | None] = []
    server.sni_callback = lambda _socket, name, _context: names.append(name)
    site = await serve(reply("sealed"), tls=server)
    pairs = [f"{name}.example:{site.port}" for name in ("jobs", "mail", "other")]
    access = WebAccess(frozenset(pairs), resolve=resolving("127.0.0.1"), tls=client_tls)
    async with guarded_client(access) as client:
        for pair in pairs[:2]:
            assert (await client.get(f"https://{pair}/")).text == "sealed"
        with pytest.raises(httpx2.ConnectError):
            await client.get(f"https://{pairs[2]}/")
    assert names[:2] == ["jobs.example", "mail.example"]
    assert len(site.heads) == 2


async def test_a_stream_comes_piece_by_piece(serve: Any) -> None:
    seen = asyncio.Event()

    async def respond(_path: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
        await writer.drain()
        await seen.wait()
        writer.write(b"data: 2\n\n")

    site = await serve(respond)
    async with guarded_client(site.access) as client, client.stream("GET", site.url) as response:
        lines = response.aiter_lines()
        assert await anext(lines) == "data: 1"
        seen.set()
        assert [line async for line in lines] == ["", "data: 2", ""]


async def test_a_body_sent_as_a_stream_goes_out_once_to_the_address_that_answers(
    serve: Any, reply: Reply
) -> None:
    site = await serve(reply("ok"))
    pair = f"jobs.example:{site.port}"
    access = WebAccess(frozenset({pair}), resolve=resolving("127.0.0.2", "127.0.0.1"))

    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"

    async with guarded_client(access) as client:
        assert (await client.post(f"http://{pair}/", content=pieces())).status_code == 200
    assert site.connections == 1


async def test_a_zipped_answer_arrives_opened(serve: Any, reply: Reply) -> None:
    site = await serve(reply(gzip.compress(b'{"a": 1}'), Content_Encoding="gzip"))
    async with guarded_client(site.access) as client:
        response = await client.get(site.url)
    assert response.json() == {"a": 1}
    assert "content-encoding" not in response.headers


async def counted(site: Any, access: WebAccess) -> int:
    """Return how many bytes a client was given before it was refused the rest."""
    given = 0
    async with guarded_client(access) as client, client.stream("GET", site.url) as response:
        try:
            async for piece in response.aiter_bytes():
                given += len(piece)
        except BodyRefusedError:
            return given
    raise AssertionError(f"all of {given} bytes were given")


async def test_a_bomb_gives_a_client_no_more_than_the_cap(serve: Any, reply: Reply) -> None:
    squeeze = zlib.compressobj(wbits=31)
    bomb = b"".join(squeeze.compress(bytes(1_000_000)) for _ in range(50)) + squeeze.flush()
    site = await serve(reply(bomb, Content_Encoding="gzip"))
    assert await counted(site, replace(site.access, max_bytes=300_000)) <= 300_000


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "zstd", "deflate", "x-unknown"])
async def test_an_encoding_nobody_asked_for_gives_a_client_nothing(
    encoding: str, serve: Any, reply: Reply
) -> None:
    site = await serve(reply(gzip.compress(bytes(1_000)), Content_Encoding=encoding))
    assert await counted(site, site.access) == 0


async def test_an_endless_answer_stops_at_the_cap_and_the_connection_is_closed(serve: Any) -> None:
    closed = asyncio.Event()

    async def respond(_path: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                writer.write(bytes(50_000))
                await writer.drain()
        finally:
            closed.set()

    site = await serve(respond)
    assert await counted(site, replace(site.access, max_bytes=400_000)) <= 400_000
    await asyncio.wait_for(closed.wait(), 10)


async def test_a_flood_of_headers_is_refused(serve: Any) -> None:
    flood = b"".join(b"A%d: b\r\n" % n for n in range(201))
    site = await serve(b"HTTP/1.1 200 OK\r\n" + flood + b"Content-Length: 0\r\n\r\n")
    async with guarded_client(site.access) as client:
        with pytest.raises(FetchError, match="headers"):
            await client.get(site.url)


#: Where else a connection is opened: the API client, mail (which is not HTTP, and whose addresses
#: the same check decides), the load tests of this site.
CONNECTING = {
    "tools/http/transport.py", "tools/mail/connection.py", "agentweb/bench/emulator_throughput.py",
    "agentweb/bench/http_client.py", "agentweb/bench/site_under_test.py",
    "agentweb/bench/websocket_client.py",
}  # fmt: skip
OPENS = re.compile(
    r"open_connection\(|create_connection\(|httpx2\.(get|post|request|stream|Client|HTTPTransport)\("
    r"|httpx2\.Async(Client|HTTPTransport)\(|aiohttp\.ClientSession\(|urllib\.request|http\.client"
    r"|import (imaplib|smtplib)"
)


async def test_nothing_else_in_the_app_opens_a_connection() -> None:
    root = Path(__file__).parents[2]
    sources = [
        path
        for top in ("agentweb", "conversations", "tools")
        for path in (root / top).rglob("*.py")
    ]
    names = {path.relative_to(root).as_posix(): path for path in sources}
    opening = {
        name
        for name, path in names.items()
        if OPENS.search(path.read_text()) and not name.startswith("agentweb/emulator/")
    }
    guarded = {name for name in opening if "GuardedTransport" in names[name].read_text()}
    assert opening - guarded == CONNECTING - {"tools/http/transport.py"}
    assert "resolve_target(" in names["tools/mail/connection.py"].read_text()
