"""Heads and handshakes: what is malformed, too large or too slow is refused in a line."""

from __future__ import annotations

import asyncio

import pytest

from tests.edge.wire import MB, Site, growth, status

pytestmark = pytest.mark.asyncio

CONTROLS = [chr(code) for code in (0x00, 0x0B, 0x0C, 0x1C, 0x1D, 0x1E, 0x85)]


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("upgrade", [(), ("Upgrade: websocket", "Connection: Upgrade")])
async def test_a_control_character_in_a_header_is_refused(
    site: Site, control: str, upgrade: tuple[str, ...]
) -> None:
    lines = f"X-Note: a{control}b", "Connection: close", *upgrade
    assert status(await site.ask(site.head("GET", "/accounts/login/", *lines))) == 400


HEADS = [
    ["X-Same: 1"] * 10_000,
    ["X-Long: " + "a" * 64_000],
    ["Cookie: " + "a" * 64_000],
    [f"X-{number}: 1" for number in range(600)],
    ["X-Folded: a", *([" b"] * 10_000)],
    ["no colon"],
    ["bad name\t: x"],
    [": x"],
]  # fmt: skip


@pytest.mark.parametrize("lines", HEADS, ids=range(len(HEADS)))
async def test_a_head_that_is_too_large_or_none_is_refused(site: Site, lines: list[str]) -> None:
    before = site.served.log.stat().st_size
    with growth(site.served, 10 * MB):
        answer = await site.ask(site.head("GET", "/accounts/login/", *lines))
    assert status(answer) in {400, 431}
    assert site.served.log.stat().st_size - before < 300


@pytest.mark.parametrize(
    "line",
    [b"GET /" + b"a" * 64_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", b"GET\r\n\r\n",
     b"GET /?" + b"a&" * 32_000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1 x\r\n\r\n",
     b"\x16\x03\x01\x02\x00\r\n", b"\0" * 20_000 + b"\r\n"],
    ids=range(6),
)  # fmt: skip
async def test_a_request_line_that_is_too_long_or_none_is_refused(site: Site, line: bytes) -> None:
    assert status(await site.ask(line)) in {400, 431}


@pytest.mark.parametrize(
    "head",
    [b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.1\r\nHost: ", b"HTTP/1.1\r\nContent-Length: 3",
     b"HTTP/1.1\r\nUpgrade: websocket"],
    ids=range(5),
)  # fmt: skip
async def test_a_request_without_a_host_is_refused(site: Site, head: bytes) -> None:
    """Not answered by the address that the server listens on, which may be one of its names."""
    asked = b"GET /accounts/login/ %b\r\nConnection: close\r\n\r\n" % head
    assert status(await site.ask(asked)) == 400


async def test_what_we_refuse_has_the_headers_of_every_answer_and_repeats_nothing(
    site: Site,
) -> None:
    long = site.head("GET", "/<script>alert(1)</script>", "Cookie: " + "a" * 64_000)
    bad = site.head(
        "GET", "/<script>alert(1)</script>", "X-Note: \x0b<script>", "Connection: close"
    )
    handshake = site.head(
        "GET", "/ws/<script>", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Version: <script>",
    )  # fmt: skip
    for head in (long, bad, handshake):
        answer = (await site.ask(head)).decode()
        assert "Content-Security-Policy: default-src 'none'; script-src 'self'" in answer
        assert "X-Content-Type-Options: nosniff" in answer
        assert "Referrer-Policy: same-origin" in answer
        assert "<script" not in answer
        assert "Daphne" not in answer
        assert "Twisted" not in answer


async def test_a_head_that_comes_by_the_byte_is_given_up(site: Site) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)

    async def dribble() -> None:
        for byte in b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " + b"a" * 1_000:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.1)

    dribbling = asyncio.create_task(dribble())
    try:
        answer = await asyncio.wait_for(reader.read(), 60)
    finally:
        dribbling.cancel()
        writer.close()
    assert status(answer) == 408


async def test_a_connection_that_says_nothing_is_closed(site: Site) -> None:
    assert await site.ask() == b""
    kept = site.head("GET", "/healthz/live")
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    for pause in (3.5, 0.0):
        writer.write(kept)
        assert status(await reader.readuntil(b"\r\n\r\n")) == 200
        await reader.readuntil(b"ok")
        # Between two requests there is more time than for one.
        await asyncio.sleep(pause)
    writer.write(kept[:20])
    assert status(await asyncio.wait_for(reader.read(), 60)) == 408
    writer.close()


async def test_many_half_open_handshakes_do_not_keep_others_out(site: Site) -> None:
    before = site.uses()
    half = site.head("GET", site.socket, "Upgrade: websocket")[:-2]
    async with site.another():
        held = []
        for _ in range(1_000):
            held.append(await asyncio.open_connection("127.0.0.1", site.port))
            # At once: who says nothing at all is closed without an answer.
            held[-1][1].write(half)
        made = await site.open(seconds=60)
        await made.read()
        await made.close()
        assert site.visitor.ask("GET", "/healthz/ready")[0] == 200
        answers = await asyncio.gather(*(reader.read() for reader, _ in held))
        assert {status(answer) for answer in answers} == {408}
        for _, writer in held:
            writer.close()
    async with asyncio.timeout(60):
        while site.uses() > before + 10:
            await asyncio.sleep(0.2)


HANDSHAKES = [
    {"Sec-WebSocket-Key": ""}, {"Sec-WebSocket-Key": "short"}, {"Sec-WebSocket-Version": "99"},
    {"Connection": "close"}, {"Host": "evil.example"},
    {"Sec-WebSocket-Protocol": "a, a"}, {"Origin": "http://[evil"},
]  # fmt: skip


@pytest.mark.parametrize("change", HANDSHAKES, ids=range(len(HANDSHAKES)))
async def test_a_handshake_that_is_none_is_refused(site: Site, change: dict[str, str]) -> None:
    asked = {
        "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==", "Origin": f"http://{site.host}",
    } | change  # fmt: skip
    lines = [f"{name}: {value}" for name, value in asked.items()]
    async with site.another():
        assert status(await site.ask(site.head("GET", site.socket, *lines))) in {400, 403}
