"""Bodies: refused by their size before they are kept, and few large ones at a time."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from agentweb.edge.body_limits import AROUND, SMALL, find_body_limit
from agentweb.edge.channel import PART
from conversations.conf import conf
from conversations.context.tokens.media import MOST_BYTES
from tests.edge.wire import MB, Site, growth, status

pytestmark = pytest.mark.asyncio
FORM = "Content-Type: application/x-www-form-urlencoded"
PIECE = b"x" * 65_536


def pieces(size: int) -> Iterator[bytes]:
    return (PIECE for _ in range(size // len(PIECE)))


def chunks(size: int) -> Iterator[bytes]:
    return (b"%x\r\n%b\r\n" % (len(PIECE), PIECE) for _ in range(size // len(PIECE)))


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/accounts/login/", 4 * MB), ("/c/new/", 4 * MB), ("/admin/login/", 4 * MB),
        ("/nothing/", SMALL - AROUND), ("/%ff", SMALL - AROUND), ("/é", SMALL - AROUND),
        ("/files/attached/", MOST_BYTES), ("/files/attached/?x=/nothing/", MOST_BYTES),
        ("/settings/data/import/", conf.max_import_bytes),
        ("/settings/prompts/import/", conf.max_import_bytes),
        ("/files/", conf.workspace_bytes), ("/c/start/", 104 * MB),
    ],
)  # fmt: skip
async def test_a_body_may_be_as_large_as_its_address_takes(path: str, most: int) -> None:
    assert find_body_limit(path.encode()) == most + AROUND


async def test_a_body_of_400_mb_is_refused_before_it_is_kept(site: Site) -> None:
    head = site.head("POST", "/accounts/login/", FORM, f"Content-Length: {400 * MB}")
    with growth(site.served, 20 * MB):
        assert status(await site.ask(head, *pieces(40 * MB))) == 413
        assert status(await site.ask(head)) == 413


async def test_a_body_without_a_length_is_refused_once_it_is_too_long(site: Site) -> None:
    head = site.head("POST", "/accounts/login/", FORM, "Transfer-Encoding: chunked")
    with growth(site.served, 20 * MB):
        assert status(await site.ask(head, *chunks(40 * MB))) == 413


async def test_who_asks_first_is_told_before_sending(site: Site) -> None:
    lines = FORM, f"Content-Length: {400 * MB}", "Expect: 100-continue"
    assert status(await site.ask(site.head("POST", "/accounts/login/", *lines))) == 413


LENGTHS = [
    ["Content-Length: -1"], ["Content-Length: x"], ["Content-Length: 1, 1"],
    ["Content-Length: 1", "Content-Length: 2"], ["Content-Length: +1"],
    ["Content-Length: 1", "Transfer-Encoding: chunked"], ["Transfer-Encoding: gzip, chunked"],
    ["Content-Length: " + "9" * 400],
]  # fmt: skip


@pytest.mark.parametrize("lines", LENGTHS)
async def test_a_length_that_means_nothing_is_refused(site: Site, lines: list[str]) -> None:
    answer = await site.ask(site.head("POST", "/accounts/login/", *lines), b"x")
    assert status(answer) in {400, 413}


@pytest.mark.parametrize(
    "chunk", [b"zz\r\n", b"-1\r\nx\r\n", b"1\r\nxx\r\n", b"1;" + b"a" * 70_000]
)
async def test_chunks_that_are_none_are_refused(site: Site, chunk: bytes) -> None:
    head = site.head("POST", "/accounts/login/", "Transfer-Encoding: chunked")
    assert status(await site.ask(head, chunk)) == 400


async def test_a_body_in_crumbs_is_refused_before_it_is_work(site: Site) -> None:
    head = site.head("POST", "/accounts/login/", FORM, "Transfer-Encoding: chunked")
    assert status(await site.ask(head, b"1\r\nx\r\n" * 1_000_000)) == 400


async def test_what_comes_behind_a_body_is_no_part_of_it(site: Site) -> None:
    head = site.head("POST", "/accounts/login/", FORM, "Content-Length: 3")
    answer = await site.ask(head, b"a=bGARBAGE GARBAGE\r\n\r\n")
    assert status(answer) == 403
    assert status(answer[answer.rindex(b"HTTP/1.1 ") :]) == 400


async def test_a_body_that_does_not_go_on_is_given_up(site: Site) -> None:
    head = site.head("POST", "/accounts/login/", FORM, "Content-Length: 100")
    assert status(await site.ask(head, b"a=b")) == 408


@asynccontextmanager
async def slow_body(site: Site, head: bytes, size: int) -> AsyncIterator[asyncio.Task[bytes]]:
    """Send that much of a body and then a little at a time; give what reads the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    answering = asyncio.create_task(reader.read(PART))

    async def go_on() -> None:
        with contextlib.suppress(ConnectionError):
            while not answering.done():
                writer.write(PIECE[:PART])
                await writer.drain()
                await asyncio.sleep(0.5)

    writer.writelines([head, *pieces(size)])
    await writer.drain()
    going = asyncio.create_task(go_on())
    try:
        yield answering
    finally:
        going.cancel()
        answering.cancel()
        writer.close()


async def test_large_bodies_share_what_the_process_allows(site: Site) -> None:
    """Eight megabytes are on their way: another eight are not taken, small bodies are."""
    token = site.visitor.cookies["csrftoken"]
    lines = f"X-CSRFToken: {token}", f"Content-Length: {9 * MB}"
    large = site.head("POST", "/files/attached/", *lines)
    was_given_up = True
    while was_given_up:
        async with slow_body(site, large, 8 * MB) as answering:
            answer = await site.ask(large, *pieces(8 * MB))
            # On a machine that stood still for seconds the slow one is given up, and makes room.
            was_given_up = status(answer) == 408 and answering.done()
            if was_given_up:
                continue
            assert status(answer) == 503
            assert b"\r\nRetry-After: " in answer
            form = {"text": ""}
            assert (await asyncio.to_thread(site.visitor.ask, "POST", "/c/start/", form))[0] == 400
    again = site.head("POST", "/files/attached/", f"Content-Length: {8 * MB}", "Connection: close")
    assert status(await site.ask(again, b"x" * (8 * MB))) == 403


async def test_the_body_of_a_handshake_is_let_go(site: Site) -> None:
    """A handshake may bring what its address takes: all of it is given back each time."""
    head = site.head("GET", "/files/attached/", "Upgrade: websocket", f"Content-Length: {8 * MB}")
    for _ in range(3):
        assert status(await site.ask(head, b"x" * (8 * MB))) == 400
    again = site.head("POST", "/files/attached/", f"Content-Length: {8 * MB}", "Connection: close")
    assert status(await site.ask(again, b"x" * (8 * MB))) == 403


async def test_a_file_arrives_whole(site: Site) -> None:
    data = b"".join(b"%d\n" % number for number in range(130_000))
    token = site.visitor.cookies["csrftoken"]
    body = (
        b'--B\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n'
        b"Content-Type: text/plain\r\n\r\n" + data + b"\r\n--B--\r\n"
    )
    lines = ["Content-Type: multipart/form-data; boundary=B", f"X-CSRFToken: {token}"]
    head = site.head(
        "POST", "/files/attached/", *lines, f"Content-Length: {len(body)}", "Connection: close"
    )
    answer = await site.ask(head, body)
    assert status(answer) == 200
    found = re.search(rb"/files/[0-9a-f-]{36}", answer)
    assert found is not None
    assert (await site.ask(site.head("GET", found[0].decode(), "Connection: close"))).endswith(data)


async def test_more_fields_or_files_than_a_form_has_are_refused(site: Site) -> None:
    token = site.visitor.cookies["csrftoken"]
    fields = "&".join(f"f{number}=" for number in range(10_000)).encode()
    file = b'--B\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\nx\r\n'
    multipart = "Content-Type: multipart/form-data; boundary=B"
    for kind, body in ((FORM, fields), (multipart, file * 1_000 + b"--B--\r\n")):
        lines = kind, f"X-CSRFToken: {token}", f"Content-Length: {len(body)}", "Connection: close"
        answer = await site.ask(site.head("POST", "/files/attached/", *lines), body)
        assert status(answer) in {400, 413}, kind
