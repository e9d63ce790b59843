"""Back-pressure: nothing piles up for a peer that does not read, and it does not stay for ever."""

from __future__ import annotations

import asyncio
import json
import select
import socket

import pytest
import pytest_asyncio

from tests.e2e.served import Served
from tests.edge.wire import MB, Site, code, connect, get, growth, status

pytestmark = pytest.mark.asyncio


async def read_messages(plain: Served) -> list[object]:
    answer = await get(plain, "/told/")
    return list(json.loads(answer[answer.index(b"[") : answer.rindex(b"]") + 1]))


def read_all(raw: socket.socket) -> None:
    while raw.recv(65_536):
        pass


async def until_cut(plain: Served, end: list[object]) -> list[object]:
    async with asyncio.timeout(60):
        while (found := await read_messages(plain))[-1:] != end:
            await asyncio.sleep(0.2)
    return found


async def flooded(plain: Served) -> list[object]:
    """Wait until an application has written, and is held up."""
    before: list[object] = []
    async with asyncio.timeout(60):
        while not (found := await read_messages(plain)) or found != before:
            before = found
            await asyncio.sleep(0.5)
    return found


async def left(number: int) -> None:
    """Wait until the server has given a connection up, without reading from it."""
    poll = select.poll()
    poll.register(number, 0)
    assert await asyncio.to_thread(poll.poll, 60_000)


@pytest_asyncio.fixture
async def forgetful(plain: Served) -> Served:
    """Give the server when it has told nothing yet."""
    await get(plain, "/forget/")
    return plain


async def test_a_page_that_does_not_read_is_cut_and_costs_next_to_nothing(
    forgetful: Served,
) -> None:
    plain = forgetful
    url = f"ws://127.0.0.1:{plain.port}/flood/"
    with growth(plain, 20 * MB):
        made = [await connect(url, receive_buffer=65_536) for _ in range(5)]
        for each in made:
            each.stop_reading()
        kind, number, *_, last = await until_cut(plain, [["closed", 4008]])
    assert kind == "message"
    assert isinstance(number, int)
    assert number < 10
    assert last == ["closed", 4008]
    for each in made:
        each.abort()


@pytest.mark.parametrize("said", [1000, 1011, 1013, 4404])
async def test_a_socket_is_closed_with_the_code_that_the_application_says(
    plain: Served, said: int
) -> None:
    made = await connect(f"ws://127.0.0.1:{plain.port}/close/{said}")
    assert await code(made) == said


async def test_a_message_is_on_its_way_when_it_was_sent(plain: Served) -> None:
    """And not when the loop comes to it: the application holds the loop between the two."""
    made = await connect(f"ws://127.0.0.1:{plain.port}/at-once/")
    assert await made.read(60) == "first"
    between = asyncio.get_running_loop().time()
    assert await made.read(60) == "second"
    assert asyncio.get_running_loop().time() - between > 0.5
    await made.close()


async def test_a_page_that_reads_slowly_is_told_everything(plain: Served) -> None:
    made = await connect(f"ws://127.0.0.1:{plain.port}/flood/", receive_buffer=65_536)
    # Each pause is far shorter than the patience of the server, all of them are longer.
    for _ in range(5):
        made.stop_reading()
        await asyncio.sleep(0.5)
        made.resume_reading()
        await made.read(60)
    for _ in range(295):
        await made.read(60)
    assert made.messages == 300
    await made.close()


async def test_a_download_that_nobody_reads_is_given_up(forgetful: Served) -> None:
    plain = forgetful
    with growth(plain, 20 * MB), socket.create_connection(("127.0.0.1", plain.port)) as raw:
        raw.sendall(b"GET /flood/ HTTP/1.1\r\nHost: a\r\n\r\n")
        await left(raw.fileno())
        _, number = await read_messages(plain)
        assert isinstance(number, int)
        assert number < 20
        raw.settimeout(60)
        with pytest.raises(ConnectionError):
            read_all(raw)


async def test_what_comes_while_an_answer_waits_for_its_reader_is_not_kept(
    forgetful: Served,
) -> None:
    """A peer takes nothing of an answer, and sends without end behind its request."""
    plain = forgetful
    with growth(plain, 20 * MB), socket.create_connection(("127.0.0.1", plain.port)) as raw:
        raw.sendall(b"GET /flood/ HTTP/1.1\r\nHost: a\r\n\r\n")
        await flooded(plain)
        raw.setblocking(False)
        sent = 0
        async with asyncio.timeout(60):
            while sent < 100 * MB:
                try:
                    sent += raw.send(b"x" * 65_536)
                except BlockingIOError:
                    await asyncio.sleep(0.05)
                except ConnectionError:
                    break
        assert sent < 20 * MB


async def test_a_connection_that_ends_with_data_for_nobody_is_given_up(forgetful: Served) -> None:
    """A page says good-bye, and does not read the answer either."""
    plain = forgetful
    made = await connect(f"ws://127.0.0.1:{plain.port}/flood/")
    made.stop_reading()
    await flooded(plain)
    made.send_frame(8, b"\x03\xe8")
    await until_cut(plain, [["closed", 4008]])
    made.abort()


async def test_the_chat_waits_for_a_page_that_does_not_read(site: Site) -> None:
    """The real application: its snapshot alone is more than such a page takes."""
    long = await site.begin("Answer in 4000 words emulator:pace=0")
    await asyncio.sleep(2)
    made = await site.open(long, receive_buffer=2_048)
    made.stop_reading()
    async with site.another() as other:
        assert await other.read(60)
    await left(made.transport.get_extra_info("socket").fileno())
    made.resume_reading()
    assert (await made.wait_closed(60)).code == 1006
    assert status(await site.ask(site.head("GET", "/healthz/ready", "Connection: close"))) == 200
