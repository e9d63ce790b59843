"""Table S60: bombs, endless and dripping answers stop at the cap or the deadline."""

from __future__ import annotations

import asyncio
import gzip
import resource
import socket
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tools.framework.errors import BodyRefusedError, FetchError
from tools.framework.outside_access import WebAccess
from tools.http.fetch import fetch_page

pytestmark = pytest.mark.asyncio

Reply = Callable[..., bytes]
HEAD = b"HTTP/1.1 200 OK\r\n"


async def test_gzip_is_opened(serve: Any, reply: Reply) -> None:
    site = await serve(reply(gzip.compress(b"page" * 100), Content_Encoding="gzip"))
    assert (await fetch_page(site.url, site.access)).body == b"page" * 100


@pytest.mark.parametrize("encoding", ["identity", "", "identity, identity"])
async def test_no_encoding_in_many_words_is_none(encoding: str, serve: Any, reply: Reply) -> None:
    site = await serve(reply("plain", Content_Encoding=encoding))
    assert (await fetch_page(site.url, site.access)).body == b"plain"


@pytest.mark.parametrize(
    "encoding",
    [
        "gzip, gzip",
        "gzip,gzip",
        "br",
        "zstd",
        "deflate",
        "gzip, br",
        "compress",
        ", ".join(["gzip"] * 50),
    ],
)
async def test_more_than_one_encoding_or_another_is_refused(
    encoding: str, serve: Any, reply: Reply
) -> None:
    site = await serve(reply(gzip.compress(gzip.compress(b"x")), Content_Encoding=encoding))
    with pytest.raises(BodyRefusedError, match="not supported"):
        await fetch_page(site.url, site.access)


async def test_encodings_in_repeated_headers_are_counted_together(serve: Any) -> None:
    site = await serve(HEAD + b"Content-Encoding: gzip\r\n" * 2 + b"Content-Length: 0\r\n\r\n")
    with pytest.raises(BodyRefusedError):
        await fetch_page(site.url, site.access)


async def test_a_gzip_bomb_costs_the_cap_and_no_more(serve: Any, reply: Reply) -> None:
    squeeze = zlib.compressobj(wbits=31)
    bomb = b"".join(squeeze.compress(bytes(1_000_000)) for _ in range(200)) + squeeze.flush()
    site = await serve(reply(bomb, Content_Encoding="gzip"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BodyRefusedError, match="5,000,000"):
        await fetch_page(site.url, site.access)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000


@pytest.mark.parametrize("body", [b"not gzip at all", gzip.compress(b"x" * 1_000, mtime=0)[:-12]])
async def test_broken_gzip_is_said_so(body: bytes, serve: Any, reply: Reply) -> None:
    site = await serve(reply(body, Content_Encoding="gzip"))
    with pytest.raises(BodyRefusedError, match="gzip"):
        await fetch_page(site.url, site.access)


async def test_an_empty_body_may_call_itself_gzip(serve: Any, reply: Reply) -> None:
    site = await serve(reply(b"", Content_Encoding="gzip"))
    assert (await fetch_page(site.url, site.access)).body == b""


async def test_a_body_of_exactly_the_cap_is_whole(serve: Any, reply: Reply) -> None:
    site = await serve(reply(b"x" * 1_000))
    access = replace(site.access, max_bytes=1_000)
    assert len((await fetch_page(site.url, access)).body) == 1_000
    with pytest.raises(BodyRefusedError):
        await fetch_page(site.url, replace(access, max_bytes=999))


async def test_zipped_bodies_are_counted_as_decoded(serve: Any, reply: Reply) -> None:
    site = await serve(reply(gzip.compress(b"x" * 1_000), Content_Encoding="gzip"))
    assert len((await fetch_page(site.url, replace(site.access, max_bytes=1_000))).body) == 1_000
    with pytest.raises(BodyRefusedError):
        await fetch_page(site.url, replace(site.access, max_bytes=999))


async def test_a_gigabyte_announced_is_refused_unread(serve: Any) -> None:
    site = await serve(HEAD + b"Content-Length: 1000000000\r\n\r\n")
    with pytest.raises(BodyRefusedError):
        await fetch_page(site.url, site.access)


async def endless(head: bytes, piece: bytes, pause: float, serve: Any) -> Any:
    async def respond(_path: str, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + head)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return await serve(respond)


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"\r\n", b"x" * 60_000),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"ea60\r\n" + b"x" * 60_000 + b"\r\n"),
    ],
)
async def test_an_endless_body_stops_at_the_cap(head: bytes, piece: bytes, serve: Any) -> None:
    site = await endless(head, piece, 0, serve)
    with pytest.raises(BodyRefusedError):
        await fetch_page(site.url, replace(site.access, max_bytes=500_000))


async def test_endless_empty_gzip_blocks_stop_at_the_cap(serve: Any) -> None:
    opened = gzip.compress(b"")[:10]
    site = await endless(
        b"Content-Encoding: gzip\r\n\r\n" + opened, b"\x00\x00\x00\xff\xff" * 8_000, 0, serve
    )
    with pytest.raises(BodyRefusedError):
        await fetch_page(site.url, replace(site.access, max_bytes=500_000))


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"\r\n", b"x"),
        (b"", b"A: b\r\n"),
        (b"", b"H"),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
    ],
)
async def test_a_dripping_server_is_left_at_the_deadline(
    head: bytes, piece: bytes, serve: Any
) -> None:
    site = await endless(head, piece, 0.01, serve)
    with pytest.raises(FetchError, match=r"within 0\.15 seconds"):
        await fetch_page(site.url, replace(site.access, deadline=0.15))


async def test_a_chain_of_slow_hops_has_one_deadline(serve: Any, reply: Reply) -> None:
    async def respond(_path: str, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.15)
        writer.write(reply(status="302 Go", Location="/"))

    site = await serve(respond)
    with pytest.raises(FetchError, match="within"):
        await fetch_page(site.url, replace(site.access, deadline=0.3))
    assert site.connections < 4


async def test_a_resolver_that_hangs_is_left_at_the_deadline() -> None:
    async def hang(_host: str, _port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    with pytest.raises(FetchError, match="within"):
        await fetch_page("http://example.com/", WebAccess(resolve=hang, deadline=0.1))


async def test_a_resolver_that_gives_up_itself_is_not_taken_for_the_deadline() -> None:
    async def give_up(_host: str, _port: int) -> list[str]:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await fetch_page("http://example.com/", WebAccess(resolve=give_up))


async def test_a_connection_that_is_never_taken_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        access = WebAccess(frozenset({f"127.0.0.1:{port}"}), connect_timeout=0.1)
        with pytest.raises(FetchError, match="too long"):
            await fetch_page(f"http://127.0.0.1:{port}/", access)
        for each in waiting:
            each.close()


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + b"".join(b"A%d: b\r\n" % n for n in range(201)) + b"Content-Length: 0\r\n\r\n",
        HEAD + b"".join(b"A%d: b\r\n" % n for n in range(100_000)) + b"\r\n",
        HEAD + b"A: " + b"x" * 300_000 + b"\r\n\r\n",
        HEAD + b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 10\r\n\r\nshort",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"",
    ],
)
async def test_an_answer_that_is_not_proper_http_is_a_clear_error(
    answer: bytes, serve: Any
) -> None:
    site = await serve(answer)
    with pytest.raises(FetchError, match=r"headers|HTTP"):
        await fetch_page(site.url, site.access)
