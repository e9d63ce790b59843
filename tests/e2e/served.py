"""The product as a person starts it: `manage.py serve` in a process, on data of its own.

`start` with `is_new` begins with nothing, as the first start does; otherwise the database has its
tables. `fork` is the same command where only the settings are what a test is about: its process has
the modules, as those of other commands on the same data have.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.rig.forking import Template, base
from tests.rig.processes import Process
from tests.support import prepared_databases, servers

PROJECT = Path(__file__).resolve().parents[2]
_SETUP = re.compile(r"http://\S+/setup/\S+")


@dataclass(slots=True)
class Served:
    """A running app; `log` is all it printed."""

    process: subprocess.Popen[bytes] | Process
    port: int
    data: Path
    log: Path
    #: Of who has set it up, for pages of the same person.
    cookies: list[Any] = field(default_factory=list)
    #: What its commands are forked from, with the first of them.
    template: Template | None = None
    #: The exit code, once it was stopped.
    code: int | None = None

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
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if found := _SETUP.search(self.log.read_text(errors="replace")):
                return found[0]
            time.sleep(0.05)
        raise AssertionError(f"no set-up link was printed:\n{self.tail()}")

    def manage(self, *arguments: str) -> str:
        """Run another command on the same data and give what it printed."""
        said = self.data / f"manage-{time.monotonic_ns()}.log"
        self.template = self.template or _template(environment(self.data))
        function = "tests.rig.roles:manage"
        process = self.template.start("manage", function, said, arguments=arguments)
        if code := process.wait(300):
            raise AssertionError(f"{' '.join(arguments)}: {code}\n{process.tail()}")
        return said.read_text(encoding="utf-8")

    def tail(self, characters: int = 6_000) -> str:
        return self.log.read_text(errors="replace")[-characters:]

    def stop(self) -> int:
        """End it as Ctrl-C's gentler twin does, and give its exit code."""
        if self.code is None:
            self.code = self._end()
        if self.template is not None:
            self.template.end()
            self.template = None
        return self.code

    def _end(self) -> int:
        if self.process.poll() is None:
            self.process.terminate()
        deadline = time.monotonic() + 60
        while (code := self.process.poll()) is None:
            if time.monotonic() > deadline:
                self.process.kill()
            time.sleep(0.02)
        return code


def start(
    data: Path,
    program: Sequence[str] = ("manage.py",),
    port: int = 0,
    *,
    is_new: bool = False,
    **extra: str,
) -> Served:
    """Serve on a free port, or a known one, and come back when the port answers."""
    _have(data, tables=not is_new)
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
    return _answering(Served(process, port, data, log))


def fork(data: Path, port: int = 0, **extra: str) -> Served:
    """Serve as `start` does, with tables that are there and in a process that need not import."""
    _have(data, tables=True)
    port, log = port or servers.free_port(), data / "serve.log"
    template = _template(environment(data, **extra))
    process = template.start("serve", "tests.rig.roles:app", log, port=port)
    return _answering(Served(process, port, data, log, template=template))


def _template(own: dict[str, str]) -> Template:
    """Start what the commands of one app are forked from."""
    folder = servers.folder_of("app")
    servers.at_end(lambda: shutil.rmtree(folder, ignore_errors=True))
    return base().template(folder, own)


def _have(data: Path, *, tables: bool) -> None:
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    if tables and not (data / "agentweb.sqlite3").exists():
        shutil.copy(prepared_databases.sqlite(), data)


def _answering(served: Served) -> Served:
    servers.at_end(served.stop)
    deadline = time.monotonic() + 300
    while not servers.is_listening(served.port):
        if served.process.poll() is not None or time.monotonic() > deadline:
            served.stop()
            raise AssertionError(f"serve did not start:\n{served.tail()}")
        time.sleep(0.05)
    return served


def environment(data: Path, **extra: str) -> dict[str, str]:
    """Give the environment of a process on this data, embedded unless `extra` says more."""
    own = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    return own | {"AGENTWEB_DATA_DIR": str(data)} | extra
