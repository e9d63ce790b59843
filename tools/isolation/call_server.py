"""The process that forks one process for each call, and what such a process does.

It imports the parsers once, gives up files and network, and then only forks: a call begins in a few
milliseconds with nothing of the call before it, and its memory, time and mistakes end with it. Each
call comes with a socket of its own, over which the request is read and the result is sent. When its
caller closes that socket the process ends (SIGIO), as it does at each of its limits.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import os
import pickle
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Any

from tools.framework.errors import ToolError
from tools.isolation.landlock import READ, forbid_access
from tools.isolation.process_limits import ProcessLimits

#: What calls need; imported before the first.
PRELOADED = (
    "tools.framework.registry", "tools.documents.pdf", "tools.documents.word",
    "tools.documents.workbook",
)  # fmt: skip
#: Lengths of request, memory, processor time, wall time.
HEAD = struct.Struct("!QQQd")
#: A result begins with its kind and its length.
RESULT_HEAD = struct.Struct("!cQ")
TEXT, DATA, JSON, REFUSED, FAILED = (bytes([each]) for each in b"tdjrf")
#: How much less of the processor a call gets than the pages.
NICE = 19
_OPEN_FILES = 32
#: Where libraries in C are, which modules load that are imported late.
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")


def main(descriptor: int) -> None:
    """Serve calls whose sockets come over this descriptor, until its other end is closed."""
    control = socket.socket(fileno=descriptor)
    for name in PRELOADED:
        importlib.import_module(name)
    _forbid()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    while True:
        _, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not descriptors:
            return
        _fork(control, descriptors[0])


def _forbid() -> None:
    """Give up all files but those of the code, and the network."""
    here = Path(__file__).resolve().parents[1]
    code = [path for path in sys.path if Path(path) != here.parent]
    forbid_access([(path, READ) for path in (str(here), *code, *_LIBRARIES)])


def _fork(control: socket.socket, descriptor: int) -> None:
    try:
        child = os.fork()
    except OSError:  # no process is left: the caller sees that its socket is closed
        child = -1
    if child:
        os.close(descriptor)
        return
    code = 1
    try:
        control.close()
        _serve(socket.socket(fileno=descriptor))
        code = 0
    finally:
        os._exit(code)


def _serve(channel: socket.socket) -> None:
    """Read one request, do it within its limits, and send the result."""
    os.nice(NICE)
    length, memory, processor, wall = HEAD.unpack(receive_exactly(channel, HEAD.size))
    request = receive_exactly(channel, length)
    _end_with(channel)
    ProcessLimits(memory, processor, wall, _OPEN_FILES).apply()
    kind, body = _answer(request)
    fcntl.fcntl(channel, fcntl.F_SETFL, fcntl.fcntl(channel, fcntl.F_GETFL) & ~os.O_ASYNC)
    with contextlib.suppress(BrokenPipeError):
        channel.sendall(RESULT_HEAD.pack(kind, len(body)))
        channel.sendall(body)


def _end_with(channel: socket.socket) -> None:
    """Have the kernel end this process when the other end of its socket is closed."""
    fcntl.fcntl(channel, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(channel, fcntl.F_SETFL, fcntl.fcntl(channel, fcntl.F_GETFL) | os.O_ASYNC)


def receive_exactly(channel: socket.socket, length: int) -> bytes:
    """Receive so many bytes; raises EOFError when the other end closes before."""
    data = bytearray(length)
    view, at = memoryview(data), 0
    while at < length:
        got = channel.recv_into(view[at:])
        if not got:
            raise EOFError
        at += got
    return bytes(data)


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
