"""Ends the process groups of servers with this process, however it ends.

A process that is killed ends nothing. A server then reads the end of its input, which many do not
take as their end, and what it started is told nothing. So one small process for all of them is told
which groups run, over a pipe that nobody else holds: when the pipe is closed it sends SIGTERM to
the groups that are left, then SIGKILL, and ends. If it ends before, the log says so and why.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time

logger = logging.getLogger("tools")
#: What tells a Python where its own libraries are; it gets nothing else of our environment.
_LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
#: Bytes of its error output that the log quotes.
_TAIL = 500
#: Seconds between SIGTERM and SIGKILL.
GRACE = 2.0
#: Signals for a whole session or container, which this process outlives to do its work.
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class GroupWatch:
    """The watching process; started with the first group, and again if it ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups = set[int]()
        self._process: subprocess.Popen[bytes] | None = None
        #: the process that started it: a copy of this process has its groups and not its children
        self._owner = 0

    def add(self, group: int) -> None:
        """Have a process group end with this process."""
        with self._lock:
            if self._owner != os.getpid():
                self._groups.clear()
            self._groups.add(group)
            self._tell(f"+{group}\n")

    def remove(self, group: int) -> None:
        """Forget a process group, because it has ended: its number may be given to another."""
        with self._lock:
            self._groups.discard(group)
            if self._owner == os.getpid():
                self._tell(f"-{group}\n")

    def _tell(self, line: str) -> None:
        process = self._process
        try:
            if process is None or self._owner != os.getpid() or process.poll() is not None:
                process, line = self._start(), "".join(f"+{one}\n" for one in self._groups)
            assert process.stdin is not None  # noqa: S101 - it is a pipe
            process.stdin.write(line.encode())
        except OSError as error:  # the next group starts another
            logger.warning("MCP servers would outlive this process if it was killed: %s", error)

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd="/",
            env={name: os.environ[name] for name in _LOADER if name in os.environ},
            start_new_session=True,
        )
        self._owner = os.getpid()
        threading.Thread(target=_report_end, args=(process,), name="watch", daemon=True).start()
        return process


def _report_end(process: subprocess.Popen[bytes]) -> None:
    """Wait for the end of a watching process, and log one that came too early."""
    assert process.stderr is not None  # noqa: S101 - it is a pipe
    with process.stderr:
        said = process.stderr.read()[-_TAIL:].decode(errors="replace")
    if code := process.wait():
        logger.error(
            "MCP servers would outlive this process if it was killed, until another server starts:"
            " the process that watches them ended with code %s: %s",
            code,
            " ".join(said.split()) or "it said nothing",
        )


#: The watch of this process.
group_watch = GroupWatch()


def main() -> None:
    """Read which groups run until the input ends, then end those that are left."""
    for one in _IGNORED:
        signal.signal(one, signal.SIG_IGN)
    groups = set[int]()
    for line in sys.stdin:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    if _send(groups, signal.SIGTERM):
        time.sleep(GRACE)
        _send(groups, signal.SIGKILL)


def _send(groups: set[int], sent: signal.Signals) -> bool:
    """Send a signal to groups; return whether one of them was there."""
    found = False
    for group in groups:
        # It may be in another namespace, or another user's by now.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, sent)
            found = True
    return found


if __name__ == "__main__":
    main()
