from __future__ import annotations

import asyncio
import gzip
import socket
from contextlib import aclosing
from typing import Any

import pytest

from agentweb.emulator.server import EmulatorServer
from conversations.agent.call import attempt_call
from conversations.agent.ports import Piece, Sent
from conversations.claude.client import Deadlines
from tests.agent.fakes import World
from tests.agent.streams import says
from tests.claude.test_wire import BODY
from tests.claude.wire_server import (
    PATIENT,
    QUICK,
    SSE,
    Heard,
    ask,
    client,
    event,
    http,
    raw,
    sends,
)

pytestmark = pytest.mark.asyncio
PING = b'event: ping\ndata: {"type":"ping"}\n\n'
HEAD = http("200 OK", SSE, "request-id: req_raw")
#: Seconds that no test waits for.
LONG = 300


def body_with_fault(fault: str) -> str:
    return BODY.replace("Héllo", f"Tell me a long story. emulator:fault={fault}")


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("error_first", "overloaded"),
        ("error_after:2", "overloaded"),
        ("api_error_after:2", "upstream"),
        ("cut_after:2", "cut"),
        ("reset_after:2", "cut"),
        ("bad_sse", "protocol_error"),
        ("close", "unreachable"),
    ],
)
async def test_a_stream_that_breaks_is_one_of_the_closed_set(
    fault: str, code: str, emulator: EmulatorServer
) -> None:
    heard = await ask(emulator.url, body_with_fault(fault), PATIENT)
    assert (heard.code, heard.may_retry) == (code, True)
    # The API says of an error that it failed; of all else it is not known what it bills.
    assert heard.failure is not None
    assert heard.failure.may_cost == ("error" not in fault)
    if "after" in fault:
        assert heard.text
        assert heard.head is not None


async def test_an_error_in_mid_stream_keeps_the_id_of_the_request() -> None:
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": "No."}}
    async with raw(sends(HEAD, event(says("Hi")[0]), event(error))) as server:
        heard = await ask(server.url)
    assert heard.failure is not None
    assert (heard.code, heard.may_retry) == ("invalid_request", False)
    assert (heard.failure.request_id, heard.failure.http_status) == ("req_raw", 200)


@pytest.mark.parametrize("fault", ["end_after:2", "end_before_stop"])
async def test_a_clean_end_before_the_message_stopped_gives_what_came(
    fault: str, emulator: EmulatorServer
) -> None:
    heard = await ask(emulator.url, body_with_fault(fault), PATIENT)
    assert heard.failure is None
    assert heard.events[-1]["type"] != "message_stop"


async def answered(answer: Any, deadlines: Deadlines = PATIENT) -> Heard:
    async with raw(answer) as server:
        return await ask(server.url, deadlines=deadlines)


@pytest.mark.parametrize(
    "answer",
    [
        sends(then=LONG),
        sends(HEAD[:20], then=LONG),
        sends(HEAD, then=LONG),
        sends(HEAD, *[PING] * 2_000, pause=0.05),
    ],
)
async def test_no_first_event_is_a_timeout_whatever_else_comes(answer: Any) -> None:
    heard = await answered(answer, QUICK)
    assert (heard.code, heard.may_retry) == ("timeout", True)
    assert heard.failure is not None
    assert heard.failure.may_cost


async def test_a_request_without_a_connection_was_never_sent() -> None:
    with socket.socket() as taken:
        # Bound, and nobody listens.
        taken.bind(("127.0.0.1", 0))
        heard = await ask(f"http://127.0.0.1:{taken.getsockname()[1]}", deadlines=PATIENT)
    assert heard.failure is not None
    assert (heard.code, heard.failure.may_cost) == ("unreachable", False)


@pytest.mark.parametrize("tail", [[b""], [PING] * 2_000, [b": comment\n"] * 2_000])
async def test_silence_in_mid_stream_is_a_timeout_and_pings_are_silence(tail: list[bytes]) -> None:
    said = b"".join([HEAD, *map(event, says("Hi")[:3])])
    heard = await answered(sends(said, *tail, pause=0.02, then=LONG), Deadlines(60, 0.3, 120))
    assert (heard.code, heard.text) == ("timeout", "Hi")


async def test_a_reader_that_takes_its_time_is_no_silence() -> None:
    """While the database is busy nobody reads, and what arrives waits in the kernel."""
    parts = [HEAD + b"".join(map(event, says("Hi")[:3])), *map(event, says("Hi")[3:])]
    given = list[str]()
    async with (
        raw(sends(*parts, pause=0.05)) as server,
        client(server.url, Deadlines(60, 0.3, 120)) as claude,
        aclosing(claude.stream(BODY)) as stream,
        asyncio.timeout(60),
    ):
        async for item in stream:
            if isinstance(item, Piece):
                given.extend(str(each["type"]) for each in item.events)
                await asyncio.sleep(0.4)
    assert given[-1] == "message_stop"


async def test_a_stream_that_never_ends_is_ended_at_the_deadline_of_the_attempt() -> None:
    delta = event(says("Hi")[2])
    parts = [HEAD, *map(event, says("Hi")[:3]), *[delta] * 2_000]
    heard = await answered(sends(*parts, pause=0.05), Deadlines(60, 60, 1.2))
    assert heard.code == "timeout"


async def test_one_byte_at_a_time_is_the_same_answer(emulator: EmulatorServer) -> None:
    whole = await ask(emulator.url, BODY, PATIENT)
    slow = await ask(emulator.url, BODY.replace("Héllo", "Héllo emulator:fault=dribble:0"), PATIENT)
    assert slow.failure is None
    assert slow.events[-1] == whole.events[-1]


async def test_a_connection_that_stays_open_behind_the_end_is_left_by_who_listens() -> None:
    parts = [HEAD, *map(event, says("Hi"))]
    async with (
        raw(sends(*parts, PING, then=LONG)) as server,
        client(server.url, PATIENT) as claude,
        asyncio.timeout(60),
    ):
        world = World(model=claude)
        answer, message = await attempt_call(
            world.ports, Sent(1, BODY), grow=world.ports.display.grow
        )
        assert (answer.text, answer.is_complete) == ("Hi", True)
        assert message is not None
        await server.gone.wait()


async def test_a_line_without_end_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conversations.claude.sse.MOST_BYTES", 10_000)
    heard = await answered(sends(HEAD, b"data: " + b"x" * 20_000, then=LONG))
    assert (heard.code, heard.may_retry) == ("protocol_error", True)


async def test_a_compressed_stream_is_read() -> None:
    packed = gzip.compress(b"".join(map(event, says("Hi"))))
    head = http("200 OK", SSE, "content-encoding: gzip")
    heard = await answered(sends(head, packed))
    assert (heard.failure, heard.text) == (None, "Hi")


async def test_a_stream_that_only_says_it_is_compressed_is_no_answer() -> None:
    head = http("200 OK", SSE, "content-encoding: gzip")
    heard = await answered(sends(head, b"plain"))
    assert heard.failure is not None
    assert heard.may_retry
