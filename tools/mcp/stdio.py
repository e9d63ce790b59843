"""A server as a child process: no shell, only its configured environment, bounded output.

Written here and not taken from the library, whose transport passes on part of our environment,
reads lines of any length and lets the child write to our log. The child leads a process group, and
the group ends with the connection: first its input is closed, then it gets SIGTERM, then SIGKILL.
It ends with this process, too, if that is killed (`group_watch`).
Only the end of its error output is kept: it tells an administrator why a server did not start.

The group runs at low priority with limits on memory, processor time and written files (Linux).
Files and network are not limited here: what a server may reach is its administrator's choice, by
the user or container that its command runs in. A server that does not read what is written to it is
disconnected, as one is that sends too much (`traffic`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import signal
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.client import Transport
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from tools.framework.clean_text import clean_text
from tools.mcp.errors import ServerError
from tools.mcp.group_watch import group_watch
from tools.mcp.server import MOST_MESSAGE, Command, Lost
from tools.mcp.traffic import Traffic

logger = logging.getLogger("tools")
#: Seconds for each step of ending a child: by itself, after SIGTERM, after SIGKILL.
GRACE = 2.0
#: Seconds that a server may take to read what is written to it.
READING = 30.0
#: Bytes of memory for data, seconds of processor time, bytes of one written file, core files.
LIMITS = {
    resource.RLIMIT_DATA: 2_000_000_000,
    resource.RLIMIT_CPU: 3_600,
    resource.RLIMIT_FSIZE: 1_000_000_000,
    resource.RLIMIT_CORE: 0,
}
_NAMES = {
    resource.RLIMIT_DATA: "memory",
    resource.RLIMIT_CPU: "processor time",
    resource.RLIMIT_FSIZE: "the size of files",
    resource.RLIMIT_CORE: "core files",
}
#: How much less of the processor a server gets than the pages.
NICE = 10
TAIL = 2_000


class _Child:
    """A process and the streams from and to it."""

    def __init__(self, process: asyncio.subprocess.Process, lost: Lost) -> None:
        self.process, self._lost = process, lost
        self._tail: deque[bytes] = deque(maxlen=8)
        self._traffic = Traffic()
        self._is_drained = asyncio.Event()

    async def receive_messages(self, send: Any) -> None:
        """Pass on its messages, one a line, until it ends or breaks a rule."""
        assert self.process.stdout is not None  # noqa: S101 - it is a pipe
        async with send:
            try:
                while line := await self.process.stdout.readline():
                    self._traffic.check_message(line)
                    if line.strip():
                        await send.send(_parse_message(line))
                self._lost(*await self._describe_end())
            except (ValueError, ServerError) as error:
                too_long = f"It wrote a message of more than {MOST_MESSAGE:,} bytes."
                self._lost(str(error) if isinstance(error, ServerError) else too_long, "")
            except (anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
                self._lost("The connection was closed.", "")

    async def send_messages(self, receive: Any) -> None:
        """Write the messages that are sent to it."""
        assert self.process.stdin is not None  # noqa: S101 - it is a pipe
        async with receive:
            try:
                async for sent in receive:
                    text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                    self.process.stdin.write(text.encode() + b"\n")
                    async with asyncio.timeout(READING):
                        await self.process.stdin.drain()
            except OSError:  # a TimeoutError is one
                # The exit of the process explains more than the failed write.
                ended, tail = await self._describe_end()
                is_there = self.process.returncode is None
                self._lost("It does not read any more." if is_there else ended, tail)
            except anyio.ClosedResourceError:
                self._lost("It does not read any more.", "")

    async def drain_errors(self) -> None:
        """Read its error output, so that it never blocks, and keep the end of it."""
        assert self.process.stderr is not None  # noqa: S101 - it is a pipe
        while piece := await self.process.stderr.read(4_096):
            self._tail.append(piece)
        self._is_drained.set()

    async def end(self) -> None:
        """End the process group; what is left of it is killed."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        for sent in (None, signal.SIGTERM, signal.SIGKILL):
            if sent is not None:
                self._signal(sent)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GRACE):
                    await self._wait()
                break
        self._signal(signal.SIGKILL)
        # No public method closes pipes that a survivor holds open.
        transport = getattr(self.process, "_transport", None)
        if transport is not None:
            transport.close()

    async def _wait(self) -> None:
        # Not process.wait(): that waits for the pipes too, which a grandchild may hold open.
        while self.process.returncode is None:
            await asyncio.sleep(0.01)

    def _signal(self, sent: signal.Signals) -> None:
        # Signals to a server in another namespace or of another user may be forbidden.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, sent)

    async def _describe_end(self) -> tuple[str, str]:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await self._wait()
                # Its last words may be read after its end.
                await self._is_drained.wait()
        code = self.process.returncode
        if code == -signal.SIGXCPU:
            return f"It computed for more than {LIMITS[resource.RLIMIT_CPU]:,} seconds.", ""
        ended = "It closed its output." if code is None else f"It ended with code {code}."
        tail = clean_text(b"".join(self._tail).decode(errors="replace"))[-TAIL:].strip()
        return ended, tail


def _parse_message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        # The line is not quoted: it may hold personal data.
        return ServerError("It wrote a line that is no message.")


@asynccontextmanager
async def _open_streams(endpoint: Command, lost: Lost) -> AsyncGenerator[object]:
    endpoint.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    process = await asyncio.create_subprocess_exec(
        endpoint.program,
        *endpoint.arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(endpoint.environment),
        cwd=endpoint.folder,
        start_new_session=True,
        limit=MOST_MESSAGE,
    )
    group_watch.add(process.pid)
    _limit_process(process.pid)
    child = _Child(process, lost)
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as group:
        group.start_soon(child.receive_messages, incoming)
        group.start_soon(child.send_messages, outgoing)
        group.start_soon(child.drain_errors)
        try:
            yield read, write
        finally:
            with anyio.CancelScope(shield=True):
                read.close()
                write.close()
                await child.end()
                group_watch.remove(process.pid)
            group.cancel_scope.cancel()


def _limit_process(pid: int) -> None:
    """Limit a process that has just started, and all that it will start; log what is refused."""
    refused = [] if _try_change(os.setpriority, os.PRIO_PROCESS, pid, NICE) else ["priority"]
    if sys.platform.startswith("linux"):
        refused += [
            _NAMES[which]
            for which, most in LIMITS.items()
            if not _try_change(_limit, pid, which, most)
        ]
    if refused:
        logger.warning("an MCP server runs without a limit on %s", ", ".join(refused))


def _try_change(change: Callable[..., object], *arguments: object) -> bool:
    """Make a change to a process; return whether it was allowed, or nothing is there any more."""
    try:
        change(*arguments)
    except ProcessLookupError:
        return True
    except PermissionError:  # it has become another user's
        return False
    return True


def _limit(pid: int, which: int, most: int) -> None:
    hard = resource.prlimit(pid, which)[1]
    hard = sys.maxsize if hard == resource.RLIM_INFINITY else hard
    limit = min(most, hard)
    # The soft limit of time ends it by a signal of its own, the hard one by SIGKILL.
    above = which == resource.RLIMIT_CPU and limit < hard
    resource.prlimit(pid, which, (limit, limit + above))


def connect_stdio(endpoint: Command, lost: Lost) -> Transport:
    """Return the client's transport; `lost` is called with the reason once the server is gone."""
    return _open_streams(endpoint, lost)  # type: ignore[return-value]
