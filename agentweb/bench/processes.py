"""The processes of a load test: each started by its own command, measured with all its children.

Time is processor time from the kernel, so PostgreSQL's short-lived backends are included and other
load on the machine matters little.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_TICKS = os.sysconf("SC_CLK_TCK")
_LIBC = ctypes.CDLL(None)
_PARENT_DEATH = 1
_PAGE = os.sysconf("SC_PAGE_SIZE")
#: Variables that a process under test must not inherit from the measuring process.
_OWN = ("DATABASE_URL", "REDIS_URL", "ANTHROPIC_", "AGENTWEB_", "DJANGO_SETTINGS_MODULE")


class NotStarted(RuntimeError):
    """A process of the run did not start; the text ends with its output."""


@dataclass(slots=True)
class Process:
    """A running command and its children."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path
    #: Where its own part of the log begins: the file may hold the output of an earlier process.
    log_start: int = 0

    @property
    def processor(self) -> float:
        """Seconds of processor time so far, children that ended included."""
        return sum(_read_seconds(pid) for pid in _list_tree(self.popen.pid))

    @property
    def memory(self) -> int:
        """Bytes in memory, shared pages counted in each process."""
        return sum(_read_memory(pid) for pid in _list_tree(self.popen.pid))

    @property
    def own_memory(self) -> int:
        """Bytes of the command itself in memory, without its children."""
        return _read_memory(self.popen.pid)

    @property
    def files(self) -> int:
        return len(list(Path(f"/proc/{self.popen.pid}/fd").iterdir()))

    def read_output(self) -> str:
        """Return its output."""
        return self.log.read_bytes()[self.log_start :].decode(errors="replace")

    def stop(self, seconds: float = 30) -> None:
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(seconds)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait(seconds)


def start_process(
    name: str,
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    *,
    python: str | Path = sys.executable,
    root: Path = ROOT,
) -> Process:
    """Start a command of a Python, else this one, in a tree; its output goes to a log file."""
    log = folder / f"{name}.log"
    log_start = log.stat().st_size if log.exists() else 0
    with log.open("ab") as output:
        popen = subprocess.Popen(
            [str(python), "-u", *command],
            cwd=root,
            env=dict(environment or clean_environment()),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_end_with_parent,  # noqa: PLW1509
        )
    return Process(name, popen, log, log_start)


def wait_for_output(process: Process, word: str, seconds: float = 240) -> str:
    """Wait until the process has printed a word; return that line."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.popen.poll() is None:
        for line in process.read_output().splitlines():
            if word in line:
                return line
        time.sleep(0.05)
    process.stop(1)
    raise NotStarted(f"{process.name} did not start:\n{process.read_output()[-3_000:]}")


class ClientProcess:
    """A process that answers each JSON line on its stdin with one on its stdout."""

    def __init__(self, module: str) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            env=clean_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=_end_with_parent,  # noqa: PLW1509
        )

    def write_line(self, line: str) -> None:
        assert self._popen.stdin is not None  # noqa: S101  (stdin is a pipe)
        self._popen.stdin.write(line.encode() + b"\n")
        self._popen.stdin.flush()

    def read_line(self, seconds: float) -> str:
        """Return the next line; raises NotStarted after `seconds` of silence or at the end."""
        assert self._popen.stdout is not None  # noqa: S101
        if not select.select([self._popen.stdout], [], [], seconds)[0]:
            raise NotStarted("the measuring client did not answer in time")
        line = self._popen.stdout.readline().decode()
        if not line:
            raise NotStarted("the measuring client ended early")
        return line

    def stop(self) -> None:
        self._popen.kill()
        self._popen.wait(10)


def clean_environment(**extra: str) -> dict[str, str]:
    """Return an environment without the settings of the process that starts another."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
    return kept | extra


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def describe_machine() -> dict[str, Any]:
    """Describe the machine and its load, without naming it."""
    return {
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": sys.version.split()[0],
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
    }


def _end_with_parent() -> None:
    """On Linux, have the kernel end a child whose parent was killed."""
    if sys.platform.startswith("linux"):
        _LIBC.prctl(_PARENT_DEATH, int(signal.SIGTERM))


def _list_tree(pid: int) -> Iterator[int]:
    yield pid
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return
    for task in tasks:
        try:
            children = (task / "children").read_text(encoding="ascii").split()
        except OSError:
            continue
        for child in children:
            yield from _list_tree(int(child))


def _read_seconds(pid: int) -> float:
    """Return its own time, by the nanosecond, and that of waited-for children, by the tick."""
    clock = ctypes.c_int()
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
        if _LIBC.clock_getcpuclockid(pid, ctypes.byref(clock)):
            return 0.0
        own = time.clock_gettime(clock.value)
    except OSError:
        return 0.0
    # cutime and cstime
    return own + sum(map(int, stat.rpartition(")")[2].split()[13:15])) / _TICKS


def _read_memory(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    except OSError:
        return 0
