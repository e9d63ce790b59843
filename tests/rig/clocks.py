"""A process with its own clock: libfaketime is preloaded before Python starts."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import libfaketime

from tests.rig.forking import PROJECT
from tests.rig.installations import Installation
from tests.rig.processes import Process
from tests.support import servers

_LIBRARY = Path(libfaketime.__file__).parent / "vendor" / "libfaketime" / "src" / "libfaketime.so.1"


@dataclass(frozen=True)
class Clock:
    """A file with the offset of the clock in hours; monotonic time is unchanged."""

    path: Path

    def set(self, hours: int) -> None:
        fresh = self.path.with_suffix(".new")
        fresh.write_text(f"{hours * 3600:+d}\n", encoding="ascii")
        fresh.rename(self.path)

    def start(self, rig: Installation, process: Process) -> Process:
        """Start the successor of an ended process with this clock."""
        self.set(0)
        role = process.name.partition("-")[0]
        arguments: dict[str, object] = {"sweep": rig.sweep}
        if role == "web":
            arguments["port"] = rig.ports[rig.webs.index(process)]
        fake = {
            "LD_PRELOAD": str(_LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self.path),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        function = "serve" if role == "web" else "worker"
        code = (
            "import django; django.setup(); from tests.rig import roles;"
            f" roles.{function}(**{arguments!r})"
        )

        def run(log: Path) -> Process:
            with log.open("ab") as output:
                started = subprocess.Popen(
                    [sys.executable, "-u", "-c", code],
                    cwd=PROJECT,
                    env=os.environ | rig.environment | fake,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            servers.at_end(started.kill)
            return Process(process.name, started.pid, log, started.poll)

        where = rig.webs if role == "web" else rig.workers
        at = where.index(process)
        where[at] = rig.greeted(process.name, run)
        return where[at]
