"""A process of the rig, identified only by its pid."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class Process:
    """A running process; `log` has all its output (shared by processes of one name)."""

    name: str
    pid: int
    log: Path
    #: Returns the exit code as `Popen.poll` does; None while it runs.
    poll: Callable[[], int | None]

    @property
    def is_running(self) -> bool:
        return self.poll() is None

    def signal(self, how: signal.Signals) -> None:
        if self.is_running:
            os.kill(self.pid, how)

    def kill(self) -> None:
        """Kill it with SIGKILL, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        self.wait()

    def pause(self) -> None:
        """Pause it with SIGSTOP; it is stopped when this returns."""
        self.signal(signal.SIGSTOP)
        deadline = time.monotonic() + 60
        while self.is_running and self.state not in "TZ" and time.monotonic() < deadline:
            time.sleep(0.002)

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    def terminate(self) -> None:
        """Send SIGTERM, as a deploy does; `wait` waits for the end."""
        self.signal(signal.SIGTERM)

    def wait(self, seconds: float = 120) -> int:
        """Wait for its end and return its exit code (minus the signal that killed it)."""
        deadline = time.monotonic() + seconds
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.name} ({self.pid}) has not ended:\n{self.tail()}")
            time.sleep(0.01)
        return code

    def end(self) -> None:
        """End it, whatever state it is in."""
        if self.is_running:
            self.kill()

    def tail(self, characters: int = 6_000) -> str:
        return self.log.read_text(errors="replace")[-characters:] if self.log.exists() else ""

    @property
    def descriptors(self) -> int:
        return sum(1 for _ in Path(f"/proc/{self.pid}/fd").iterdir())

    @property
    def threads(self) -> int:
        return sum(1 for _ in Path(f"/proc/{self.pid}/task").iterdir())

    @property
    def resident(self) -> int:
        """Return its resident memory in bytes."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    @property
    def state(self) -> str:
        """Return the kernel's one-letter state: T for a paused process."""
        return (
            Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
        )
