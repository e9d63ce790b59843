"""Frames: whoever says too much, or what is none, is told why and not read any further."""

from __future__ import annotations

import struct

import pytest
from websockets.frames import Frame, Opcode
from websockets.protocol import Protocol, Side, State

from agentweb.bench.websocket_client import BINARY, PING, TEXT, Refused
from agentweb.edge import sockets as edge
from agentweb.edge.sockets import MOST_FRAME, MOST_FRAMES
from tests.edge.wire import MB, Site, Socket, code, growth

pytestmark = pytest.mark.asyncio
CONTINUED = 0


def frame_head(kind: int, size: int) -> bytes:
    """Make the head of a frame that says so many bytes come."""
    return bytes([0x80 | kind, 0xFF]) + struct.pack("!Q", size) + bytes(4)


async def opened(site: Site) -> Socket:
    made = await site.open()
    await made.read()
    return made


@pytest.mark.parametrize("size", [2, 125, 126, 65_535, 65_536, 200_000])
async def test_a_text_goes_out_as_one_frame_of_the_protocol(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, made, text = list[bytes](), edge.Socket(), "é" + "x" * (size - 2)
    monkeypatch.setattr(made, "sendData", sent.append)
    made.state = made.STATE_OPEN
    made.handle_reply({"type": "websocket.send", "text": text})
    reader = Protocol(Side.CLIENT, state=State.OPEN, max_size=None)
    reader.receive_data(b"".join(sent))
    (frame,) = reader.events_received()
    assert frame == Frame(Opcode.TEXT, text.encode())
    made.state = made.STATE_CLOSED
    made.handle_reply({"type": "websocket.send", "text": "too late"})
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (bytes([0x81, 0x82]) + bytes(4) + b"\xff\xfe", 1007),
        (bytes([0x81, 0x81]) + bytes(4) + b"\xe2", 1007),
        (bytes([0x82, 0x81]) + bytes(4) + b"x", 1003),
        (bytes([0x80, 0x81]) + bytes(4) + b"x", 1002),
        (bytes([0x00, 0x81]) + bytes(4) + b"x", 1002),
        (bytes([0xC1, 0x81]) + bytes(4) + b"x", 1002),
        (bytes([0xF1, 0x81]) + bytes(4) + b"x", 1002),
        (bytes([0x83, 0x81]) + bytes(4) + b"x", 1002),
        (bytes([0x8B, 0x80]) + bytes(4), 1002),
        (bytes([0x09, 0x80]) + bytes(4), 1002),
        (bytes([0x89, 0xFE, 0x00, 0x7E]) + bytes(4) + b"x" * 126, 1002),
        (bytes([0x81, 0x01]) + b"x", 1002),
        (bytes([0x01, 0x81]) + bytes(4) + b"x" + bytes([0x81, 0x81]) + bytes(4) + b"x", 1002),
        (bytes([0x88, 0x82]) + bytes(4) + struct.pack("!H", 999), 1002),
        (bytes([0x88, 0x81]) + bytes(4) + b"x", 1002),
        (frame_head(TEXT, 2**63), 1002),
        (frame_head(TEXT, 2**62), 1009),
        (frame_head(TEXT, MOST_FRAME + 1), 1009),
        (frame_head(BINARY, 2**20 + 1), 1003),
    ],
)
async def test_a_frame_that_breaks_the_rules_ends_its_socket_with_the_reason(
    site: Site, data: bytes, expected: int
) -> None:
    async with site.another():
        made = await opened(site)
        made.transport.write(data)
        assert await code(made) == expected


async def test_a_message_of_the_longest_length_is_taken_and_one_longer_is_not(site: Site) -> None:
    made = await opened(site)
    made.send("x" * MOST_FRAME)
    made.send("")
    made.send_frame(TEXT, b"a", is_last=False)
    made.send_frame(CONTINUED, "é".encode())
    made.send_frame(PING, b"there?")
    made.send_frame(TEXT, b"x" * 100_000, is_last=False)
    made.send_frame(CONTINUED, b"x" * 31_073)
    assert await code(made) == 1009


async def test_a_message_in_many_parts_is_refused_early(site: Site) -> None:
    with growth(site.served, 5 * MB):
        made = await opened(site)
        made.send_frame(TEXT, b"x", is_last=False)
        made.transport.write(bytes([0x00, 0x81, 0, 0, 0, 0, 0x78]) * 500_000)
        assert await code(made) == 1009


async def flood(site: Site, data: bytes) -> None:
    async with site.another():
        with growth(site.served, 20 * MB):
            made = await opened(site)
            made.transport.write(data)
            assert await code(made) == 1008


async def test_a_flood_of_small_frames_ends_early(site: Site) -> None:
    await flood(site, bytes([0x81, 0x82, 0, 0, 0, 0, 0x7B, 0x7D]) * 100_000)


async def test_a_flood_of_pings_ends_early(site: Site) -> None:
    await flood(site, bytes([0x89, 0x80, 0, 0, 0, 0]) * 100_000)


async def test_a_flood_of_pongs_ends_early(site: Site) -> None:
    await flood(site, bytes([0x8A, 0x80, 0, 0, 0, 0]) * 100_000)


async def test_a_flood_of_large_messages_ends_early(site: Site) -> None:
    message = frame_head(TEXT, 100_000) + b"x" * 100_000
    await flood(site, message * 300)


async def test_what_a_page_says_in_earnest_is_never_too_much(site: Site) -> None:
    async with site.another() as made:
        for _ in range(150):
            made.send("{}")
        for _ in range(MOST_FRAMES - 200):
            made.send_frame(PING)


@pytest.mark.parametrize("query", ["", "?token=", "?token=x", "?after=0", "?token=%00"])
async def test_a_handshake_without_the_token_of_its_session_is_refused(
    site: Site, query: str
) -> None:
    with pytest.raises(Refused) as refused:
        await site.open(site.socket.partition("?")[0] + query)
    assert refused.value.status == 403


@pytest.mark.parametrize(
    "origin", [None, "null", "http://localhost:9999", "https://{host}", "http://127.0.0.1:1"]
)
async def test_a_handshake_from_another_site_is_refused(site: Site, origin: str | None) -> None:
    with pytest.raises(Refused) as refused:
        await site.open(origin=origin and origin.format(host=site.host))
    assert refused.value.status == 403


async def test_a_log_in_anew_gives_the_page_the_token_of_its_session(site: Site) -> None:
    answer = site.visitor.ask("GET", "/accounts/again/", HX_Request="true")[2]
    assert f'data-socket="{site.socket.partition("token=")[2]}"' in answer
