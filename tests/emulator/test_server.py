"""The HTTP server of the emulator: keep-alive, disconnects, broken responses, bad clients."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from agentweb.emulator.asgi import read_body, respond, start
from agentweb.emulator.server import Server

Seen = list[Any]


class Echo:
    """Answers with the size of the body; streams, waits or ends early by path."""

    def __init__(self) -> None:
        self.gone, self.written = threading.Event(), threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        match scope["path"]:
            case "/early":
                await respond(send, 413, b"no", [])
            case "/stream":
                await start(send, 200, [])
                for part in (b"one", b"two", b""):
                    await send(
                        {"type": "http.response.body", "body": part, "more_body": bool(part)}
                    )
            case "/cut":
                await start(send, 200, [])
                await send({"type": "http.response.body", "body": b"half", "more_body": True})
            case "/wait":
                await start(send, 200, [])
                await send({"type": "http.response.body", "body": b"x", "more_body": True})
                while (await receive())["type"] != "http.disconnect":
                    pass
                self.gone.set()
            case "/reset":
                await start(send, 200, [])
                await send({"type": "http.response.body", "body": b"half", "more_body": True})
                await send({"type": "emulator.reset"})
            case "/unbounded":
                await send({"type": "emulator.unbounded"})
                await start(send, 200, [])
                for _ in range(100):
                    part = b"x" * 100_000
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                self.written.set()
                await send({"type": "http.response.body", "body": b""})
            case "/silent":
                pass
            case "/boom":
                raise RuntimeError("boom")
            case _:
                body = await read_body(receive, 100_000_000)
                await respond(send, 200, str(len(body or b"")).encode(), [])


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    with Server(Echo()).start() as running:
        yield running


def talk(served: Server, *requests: bytes) -> bytes:
    """Send raw requests on one connection and read it to its end."""
    with socket.create_connection((served.host, served.port), timeout=60) as wire:
        for request in requests:
            wire.sendall(request)
        received = b""
        while part := wire.recv(65_536):
            received += part
        return received


def read_until(wire: socket.socket, ending: bytes) -> bytes:
    received = b""
    while not received.endswith(ending):
        part = wire.recv(65_536)
        assert part, received
        received += part
    return received


def get(path: str, close: bool = True) -> bytes:
    end = b"connection: close\r\n" if close else b""
    return b"GET %b HTTP/1.1\r\nhost: localhost\r\n%b\r\n" % (path.encode(), end)


def post(body: bytes, close: bool = True) -> bytes:
    end = b"connection: close\r\n" if close else b""
    head = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n%b\r\n"
    return head % (len(body), end) + body


def test_one_connection_serves_many_requests(served: Server) -> None:
    received = talk(served, post(b"abc", close=False), post(b"", close=False), post(b"12345"))
    bodies = [part.split(b"HTTP")[0] for part in received.split(b"\r\n\r\n")[1:]]
    assert bodies == [b"3", b"0", b"5"]


def test_requests_may_arrive_together_or_byte_by_byte(served: Server) -> None:
    both = post(b"abc", close=False) + post(b"12345")
    assert talk(served, both).endswith(b"5")
    assert talk(served, *(both[at : at + 1] for at in range(len(both)))).endswith(b"5")


def test_a_chunked_body_is_read_to_its_end(served: Server) -> None:
    head = b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n"
    head += b"connection: close\r\n\r\n"
    assert talk(served, head + b"3\r\nabc\r\n", b"4;x=y\r\n1234\r\n", b"0\r\n\r\n").endswith(b"7")


def test_a_large_body_arrives_whole(served: Server) -> None:
    assert talk(served, post(b"x" * 33_000_000)).endswith(b"33000000")


def test_a_stream_is_chunked_and_ends_with_an_empty_chunk(served: Server) -> None:
    assert talk(served, get("/stream")).endswith(b"\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")


def test_an_app_that_stops_midway_has_its_connection_cut(served: Server) -> None:
    assert talk(served, get("/cut", close=False)).endswith(b"4\r\nhalf\r\n")


def test_an_app_that_answers_nothing_has_its_connection_closed(
    served: Server, caplog: pytest.LogCaptureFixture
) -> None:
    assert talk(served, get("/silent", close=False)) == b""
    assert talk(served, get("/cut", close=False)).endswith(b"half\r\n")
    assert caplog.text == ""


def test_a_reset_is_a_reset(served: Server) -> None:
    with pytest.raises(ConnectionResetError):
        talk(served, get("/reset", close=False))


def test_an_unbounded_app_is_not_held_up_by_its_reader(served: Server) -> None:
    echo = served.app
    assert isinstance(echo, Echo)
    with socket.create_connection((served.host, served.port), timeout=60) as wire:
        wire.sendall(get("/unbounded"))
        assert echo.written.wait(5)
        size = 0
        while part := wire.recv(1 << 20):
            size += len(part)
    assert size > 100 * 100_000


def test_a_small_answer_does_not_wait_for_an_acknowledgement(served: Server) -> None:
    with socket.create_connection((served.host, served.port), timeout=60) as wire:
        began = time.monotonic()
        for _ in range(50):
            wire.sendall(post(b"abc", close=False))
            read_until(wire, b"\r\n\r\n3")
        assert time.monotonic() - began < 1


def test_a_client_that_leaves_is_noticed(served: Server) -> None:
    echo = served.app
    assert isinstance(echo, Echo)
    with socket.create_connection((served.host, served.port)) as wire:
        wire.sendall(get("/wait"))
        wire.recv(1)
    assert echo.gone.wait(5)


def test_an_early_answer_to_a_large_upload_can_be_read(served: Server) -> None:
    head = b"POST /early HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9000000\r\n\r\n"
    received = talk(served, head, *[b"x" * 1_000_000] * 9, post(b"abc"))
    assert [part.split(b"HTTP")[0] for part in received.split(b"\r\n\r\n")[1:]] == [b"no", b"3"]


def test_continue_is_said_before_the_body_is_awaited(served: Server) -> None:
    head = (
        b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\nexpect: 100-continue\r\n"
        b"connection: close\r\n\r\n"
    )
    with socket.create_connection((served.host, served.port), timeout=60) as wire:
        wire.sendall(head)
        assert read_until(wire, b"\r\n\r\n").startswith(b"HTTP/1.1 100 Continue")
        wire.sendall(b"ab")
        assert read_until(wire, b"\r\n\r\n2").startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize(
    "request_head",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nbad header\r\n\r\n",
        b"GET / HTTP/1.1\r\n spaced: 1\r\nhost: localhost\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * 70_000,
    ],
)
def test_a_bad_head_is_refused(served: Server, request_head: bytes) -> None:
    assert talk(served, request_head).startswith(b"HTTP/1.1 400")


def test_a_failing_app_is_a_500(served: Server, caplog: pytest.LogCaptureFixture) -> None:
    assert talk(served, get("/boom")).startswith(b"HTTP/1.1 500")
    assert "RuntimeError: boom" in caplog.text


def test_a_server_can_be_started_and_stopped_again_and_again() -> None:
    for _ in range(3):
        with Server(Echo()).start() as running:
            assert talk(running, post(b"abc")).endswith(b"3")


def test_stopping_ends_open_streams() -> None:
    running = Server(Echo()).start()
    with socket.create_connection((running.host, running.port), timeout=60) as wire:
        wire.sendall(get("/wait"))
        wire.recv(1)
        running.stop()
        while wire.recv(1_000):
            pass
    assert running.connections == 0


def test_an_idle_connection_does_not_hold_up_the_end() -> None:
    running = Server(Echo()).start()
    with socket.create_connection((running.host, running.port), timeout=60) as wire:
        wire.sendall(post(b"abc", close=False))
        read_until(wire, b"\r\n\r\n3")
        began = time.monotonic()
        running.stop()
        assert time.monotonic() - began < 1
        assert wire.recv(1_000) == b""


def test_a_server_takes_no_signal_and_leaves_logging_alone() -> None:
    signals = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    handlers = list(logging.getLogger().handlers)
    with Server(Echo()).start() as running:
        assert talk(running, post(b"abc")).endswith(b"3")
        assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == signals
        assert logging.getLogger().handlers == handlers
        assert logging.getLogger("uvicorn").handlers == []


def test_two_servers_run_beside_each_other_and_a_running_loop() -> None:
    async def inside() -> bytes:
        with Server(Echo()).start() as one, Server(Echo()).start() as two:
            assert one.port != two.port
            return await asyncio.to_thread(talk, two, post(b"ab"))

    assert asyncio.run(inside()).endswith(b"2")
