"""Calls of a function in a process of its own: `await run_isolated(function, ...)`.

For all work whose time or memory depends on text or bytes from outside: parsing, searching,
matching. Neither the event loop nor the interpreter lock waits for it, whatever the text. Arguments
are anything that can be pickled; the result is bytes, a text or a JSON value, because the process
may be under the control of what it read. A ToolError of the function is raised here; any other end
is an IsolationError. A call whose caller is cancelled is ended.

At most `AT_ONCE` calls of each kind run at the same time, at low priority, half of them for one
person (fair_queue.py); others wait.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import pickle
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from tools.framework import errors
from tools.framework.errors import IsolationError, ToolError, WorkspaceBusyError
from tools.framework.person import current_person
from tools.isolation.call_server import (
    BEGIN,
    DATA,
    HEAD,
    JSON,
    READY,
    REFUSED,
    RESULT_HEAD,
    TEXT,
    receive_exactly,
    set_deadline,
)
from tools.isolation.fair_queue import FairQueue
from tools.isolation.process_limits import OF_DOCUMENTS, OF_TEXT, ProcessLimits

logger = logging.getLogger("tools")
#: Calls of each kind that run at the same time.
AT_ONCE = {OF_TEXT: 4, OF_DOCUMENTS: 2}
#: Seconds that a call waits for its turn.
PATIENCE = 20.0
#: Seconds beyond its own limit until a process counts as lost, and for the server to be ready.
SLACK, STARTING = 5.0, 60.0
#: Most bytes of a result.
MOST_BYTES = 64_000_000
ROOT = str(Path(__file__).resolve().parents[2])
START = (
    "import sys; sys.path.insert(0, sys.argv[1]);"
    "from tools.isolation.call_server import main; main(int(sys.argv[2]))"
)


async def run_isolated(
    function: Callable[..., Any], *arguments: Any, limits: ProcessLimits = OF_TEXT
) -> Any:
    """Return what the function returns; raises its ToolError, IsolationError, WorkspaceBusyError.

    The function is found by its name in its module, so it stands at the top of one.
    """
    call = _Call(function, arguments, limits)
    future = _queues[limits].submit(current_person.get(), call.run)
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        call.end()
        raise


def call_isolated(
    function: Callable[..., Any],
    *arguments: Any,
    limits: ProcessLimits = OF_TEXT,
    person: str = "",
) -> Any:
    """Do the same where no event loop runs, for a person; it blocks."""
    work = _Call(function, arguments, limits).run
    return _queues[limits].submit(person or current_person.get(), work).result()


class _Server:
    """The process that forks (call_server.py); started at the first call, and again if it ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._owner = 0

    def open_channel(self, seconds: float) -> socket.socket:
        """Return a socket to a new process, which may take so long.

        Raises ToolError where no process can be started.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._send(theirs, seconds)
            except (BrokenPipeError, ConnectionResetError):
                # It has ended since it was looked at.
                self._send(theirs, seconds)
        return ours

    def _send(self, channel: socket.socket, seconds: float) -> None:
        socket.send_fds(self._connect(), [BEGIN.pack(seconds)], [channel.fileno()])

    def _connect(self) -> socket.socket:
        with self._lock:
            is_ours = self._owner == os.getpid()
            if is_ours and self._control and self._process and self._process.poll() is None:
                return self._control
            if self._control is not None:
                self._control.close()
            self._control, theirs = socket.socketpair()
            with theirs, tempfile.TemporaryFile() as errors_of_start:
                self._process = _start_process(theirs, errors_of_start)
                theirs.close()
                if not _is_ready(self._control):
                    self._process.kill()
                    self._process.wait()
                    errors_of_start.seek(0)
                    said = errors_of_start.read()[-2_000:].decode(errors="replace")
                    logger.error("the process that reads files and texts does not start: %s", said)
                    raise ToolError(NOT_STARTED)
            self._owner = os.getpid()
            return self._control

    def start(self) -> None:
        """Start it now, so that the first call waits for no imports; an error is logged."""
        with suppress(ToolError):
            self._connect()


def _is_ready(control: socket.socket) -> bool:
    """Wait until a server is ready; return whether it is."""
    try:
        receive_exactly(control, len(READY), time.monotonic() + STARTING)
    except (OSError, EOFError):
        return False
    control.settimeout(None)
    return True


def _start_process(control: socket.socket, errors_of_start: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-c", START, ROOT, str(control.fileno())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors_of_start,
        env={},
        pass_fds=[control.fileno()],
        start_new_session=True,
    )


_server = _Server()
start_call_server = _server.start


class _Call:
    """One call, run by a thread that waits for its process."""

    def __init__(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], limits: ProcessLimits
    ) -> None:
        self._function, self._arguments, self._limits = function, arguments, limits
        self._due = time.monotonic() + PATIENCE
        self._lock = threading.Lock()
        self._channel: socket.socket | None = None
        self._is_ended = False

    def end(self) -> None:
        """End its process, from any thread."""
        with self._lock:
            self._is_ended = True
            if self._channel is not None:
                with suppress(OSError):
                    self._channel.shutdown(socket.SHUT_RDWR)

    def run(self) -> Any:
        if time.monotonic() > self._due:
            raise WorkspaceBusyError(BUSY)
        channel = _server.open_channel(self._limits.wall + SLACK)
        try:
            with self._lock:
                self._channel = channel
            if self._is_ended:
                raise IsolationError(ENDED)
            return _decode_result(*self._exchange(channel))
        finally:
            with self._lock:
                self._channel = None
            channel.close()

    def _exchange(self, channel: socket.socket) -> tuple[bytes, bytes]:
        limits = self._limits
        request = pickle.dumps((self._function, self._arguments), pickle.HIGHEST_PROTOCOL)
        head = HEAD.pack(len(request), limits.memory, limits.processor, limits.wall)
        due = time.monotonic() + limits.wall + SLACK
        try:
            for part in (head, request):
                set_deadline(channel, due)
                channel.sendall(part)
            kind, length = RESULT_HEAD.unpack(receive_exactly(channel, RESULT_HEAD.size, due))
            if length > MOST_BYTES:
                raise IsolationError(f"It gave more than {MOST_BYTES:,} bytes.")
            return kind, receive_exactly(channel, length, due)
        except (OSError, EOFError) as error:
            raise IsolationError(ENDED) from error


ENDED = "It could not be done within the limits of time and memory."
BUSY = (
    f"Too many files and texts wait to be read and searched, for {PATIENCE:g} seconds; try again."
)
NOT_STARTED = "No file or text can be read or searched now; the log of the site says why."


def _decode_result(kind: bytes, body: bytes) -> Any:
    if kind == DATA:
        return body
    try:
        if kind == TEXT:
            return body.decode("utf-8", "surrogatepass")
        if kind == JSON:
            return json.loads(body.decode("utf-8", "surrogatepass"))
        if kind == REFUSED:
            raise _make_refusal(*json.loads(body))
    except (ValueError, TypeError, RecursionError) as error:
        raise IsolationError("It gave no result that can be read.") from error
    name = body[:80].decode("ascii", "replace")
    raise IsolationError(ENDED if name == "MemoryError" else f"It failed ({name}).")


def _make_refusal(name: str, message: str, data: dict[str, Any]) -> ToolError:
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, ToolError)):
        kind = ToolError
    return kind(message, **data)


_queues = {limits: FairQueue(count) for limits, count in AT_ONCE.items()}
