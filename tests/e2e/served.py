"""The product as a person starts it: `manage.py serve` in a process, on data of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests import servers

PROJECT = Path(__file__).resolve().parents[2]
_SETUP = re.compile(r"http://\S+/setup/\S+")


@dataclass(slots=True)
class Served:
    """A running app; `log` is all it printed."""

    process: subprocess.Popen[bytes]
    port: int
    data: Path
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> Path:
        """The embedded database, for tests that look at rows with `sqlite3`."""
        return self.data / "agentweb.sqlite3"

    @property
    def setup_url(self) -> str:
        """The one-time link that a first start prints, a moment after the port answers."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if found := _SETUP.search(self.log.read_text(errors="replace")):
                return found[0]
            time.sleep(0.05)
        raise AssertionError(f"no set-up link was printed:\n{self.tail()}")

    def manage(self, *arguments: str) -> str:
        """Run another command on the same data and give what it printed."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            check=False, cwd=PROJECT, env=environment(self.data), text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        if done.returncode:
            raise AssertionError(f"{' '.join(arguments)}: {done.returncode}\n{done.stdout}")
        return done.stdout

    def tail(self, characters: int = 6_000) -> str:
        return self.log.read_text(errors="replace")[-characters:]

    def stop(self) -> int:
        """End it as Ctrl-C's gentler twin does, and give its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait(timeout=10)


def start(
    data: Path, program: Sequence[str] = ("manage.py",), port: int = 0, **extra: str
) -> Served:
    """Serve on a free port, or a known one, and come back when the port answers."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    port, log = port or servers.free_port(), data / "serve.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-u", *program, "serve", "--port", str(port)],
            cwd=PROJECT,
            env=environment(data, **extra),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=servers.end_with_parent(signal.SIGTERM),  # noqa: PLW1509
        )
    served = Served(process, port, data, log)
    servers.at_end(served.stop)
    deadline = time.monotonic() + 60
    while not servers.is_listening(port):
        if process.poll() is not None or time.monotonic() > deadline:
            served.stop()
            raise AssertionError(f"serve did not start:\n{served.tail()}")
        time.sleep(0.05)
    return served


def environment(data: Path, **extra: str) -> dict[str, str]:
    """Give the environment of a process on this data, embedded unless `extra` says more."""
    own = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    return own | {"AGENTWEB_DATA_DIR": str(data)} | extra
