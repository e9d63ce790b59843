"""The process that forks one process for each call, and what such a process does.

It imports the parsers once, gives up files and network, and then only forks: a call begins in a few
milliseconds with nothing of the call before it, and its memory, time and mistakes end with it. Each
call comes with a socket of its own, over which the request is read and the result is sent, and
leads a process group. The group is killed when its caller closes that socket, when its time is
over, and when its leader has ended, as it does at each of its limits.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import math
import os
import pickle
import select
import signal
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any

from tools.framework.errors import ToolError
from tools.isolation.landlock import forbid_access
from tools.isolation.process_limits import ProcessLimits

#: What calls need; imported before the first.
PRELOADED = (
    "tools.framework.registry", "tools.documents.pdf", "tools.documents.word",
    "tools.documents.workbook",
)  # fmt: skip
#: What the server says when it is ready, and what comes with each socket: the most seconds.
READY, BEGIN = b"r", struct.Struct("!d")
#: Lengths of request, memory, processor time, wall time.
HEAD = struct.Struct("!QQQd")
#: A result begins with its kind and its length.
RESULT_HEAD = struct.Struct("!cQ")
TEXT, DATA, JSON, REFUSED, FAILED = (bytes([each]) for each in b"tdjrf")
#: How much less of the processor a call gets than the pages.
NICE = 19
#: Where libraries in C are, which modules load that are imported late.
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")


def main(descriptor: int) -> None:
    """Serve calls whose sockets come over this descriptor, until its other end is closed."""
    control = socket.socket(fileno=descriptor)
    for name in PRELOADED:
        importlib.import_module(name)
    _forbid()
    gc.collect()
    gc.freeze()
    control.sendall(READY)
    # What is written to it until here says why a server does not start; calls have nothing to say.
    os.dup2(0, 2)
    _Server(control).serve()


class _Server:
    """The processes that run, by the descriptors of their sockets."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._calls: dict[int, tuple[int, float]] = {}
        # A child that ends wakes the server.
        self._wakes, self._woken = os.pipe()
        for end in (self._wakes, self._woken):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)

    def serve(self) -> None:
        while True:
            poll = select.poll()
            poll.register(self._control, select.POLLIN)
            poll.register(self._wakes, select.POLLIN)
            for channel in self._calls:
                poll.register(channel, 0)  # that its other end is closed is told anyway
            seen = {descriptor for descriptor, _ in poll.poll(1_000 if self._calls else None)}
            with contextlib.suppress(BlockingIOError):
                os.read(self._wakes, 1_000)
            self._end_calls(seen)
            if self._control.fileno() in seen and not self._begin_call():
                self._end_calls(set(self._calls))
                return

    def _begin_call(self) -> bool:
        """Fork for the next call; return whether there was one."""
        message, descriptors, _, _ = socket.recv_fds(self._control, BEGIN.size, 1)
        if not descriptors:
            return False
        (channel,) = descriptors
        try:
            child = os.fork()
        except OSError:  # no process is left: the caller sees that its socket is closed
            os.close(channel)
            return True
        if not child:
            self._become_call(channel)
        with contextlib.suppress(OSError):  # it has done so itself
            os.setpgid(child, child)
        self._calls[channel] = (child, time.monotonic() + BEGIN.unpack(message)[0])
        return True

    def _become_call(self, channel: int) -> None:
        code = 1
        try:
            os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._control.close()
            for descriptor in (self._wakes, self._woken, *self._calls):
                os.close(descriptor)
            _serve(socket.socket(fileno=channel))
            code = 0
        finally:
            os._exit(code)

    def _end_calls(self, closed: set[int]) -> None:
        """Kill what is over, with all that it has started."""
        now = time.monotonic()
        for channel, (child, due) in list(self._calls.items()):
            if channel in closed or now > due:
                _kill_group(child)
                os.waitpid(child, 0)
            elif os.waitpid(child, os.WNOHANG)[0] == 0:
                continue
            # Its number is not given to another as long as one of its group is left.
            _kill_group(child)
            os.close(channel)
            del self._calls[channel]


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _forbid() -> None:
    """Give up all files but those of the code, and the network."""
    here = Path(__file__).resolve().parents[1]
    code = [path for path in sys.path if Path(path) != here.parent]
    forbid_access([str(here), *code, *_LIBRARIES])


def _serve(channel: socket.socket) -> None:
    """Read one request, do it within its limits, and send the result."""
    os.nice(NICE)
    length, memory, processor, wall = HEAD.unpack(receive_exactly(channel, HEAD.size))
    request = receive_exactly(channel, length)
    ProcessLimits(memory, processor, wall).apply()
    kind, body = _answer(request)
    with contextlib.suppress(BrokenPipeError):
        channel.sendall(RESULT_HEAD.pack(kind, len(body)))
        channel.sendall(body)


def receive_exactly(channel: socket.socket, length: int, due: float = math.inf) -> bytes:
    """Receive so many bytes until a moment of `time.monotonic`.

    Raises EOFError when the other end closes before, TimeoutError when it is too late.
    """
    data = bytearray(length)
    view, at = memoryview(data), 0
    while at < length:
        set_deadline(channel, due)
        got = channel.recv_into(view[at:])
        if not got:
            raise EOFError
        at += got
    return bytes(data)


def set_deadline(channel: socket.socket, due: float) -> None:
    """Have the next operation end at a moment of `time.monotonic`; raises TimeoutError after it."""
    if due != math.inf:
        left = due - time.monotonic()
        if left <= 0:
            raise TimeoutError
        channel.settimeout(left)


def _answer(request: bytes) -> tuple[bytes, bytes]:
    try:
        function, arguments = pickle.loads(request)  # noqa: S301 - written by our own process
        return encode_result(function(*arguments))
    except ToolError as error:
        return REFUSED, json.dumps([type(error).__name__, str(error), error.data]).encode()
    except MemoryError:
        return FAILED, b"MemoryError"
    except Exception as error:  # a parser may raise anything
        return FAILED, type(error).__name__.encode()


def encode_result(value: Any) -> tuple[bytes, bytes]:
    """Encode bytes, a text, or a JSON value: forms that cannot harm whoever reads them."""
    match value:
        case bytes():
            return DATA, value
        case str():
            return TEXT, value.encode("utf-8", "surrogatepass")
        case _:
            text = json.dumps(value, ensure_ascii=False)
            return JSON, text.encode("utf-8", "surrogatepass")
