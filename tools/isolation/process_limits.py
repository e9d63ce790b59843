"""What a process that handles foreign text may use."""

from __future__ import annotations

import resource
import signal
from dataclasses import dataclass

#: Open files; none may be written.
_OPEN_FILES = 32


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    #: bytes of address space
    memory: int
    #: seconds of processor time, and of wall time
    processor: int
    wall: float

    def apply(self) -> None:
        """Limit this process, for good."""
        for which, most in (
            (resource.RLIMIT_AS, self.memory),
            (resource.RLIMIT_NOFILE, _OPEN_FILES),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_CORE, 0),
        ):
            lower_limit(which, most)
        used = resource.getrusage(resource.RUSAGE_SELF)
        lower_limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + self.processor)
        # Nobody handles it: the kernel ends the process.
        signal.setitimer(signal.ITIMER_REAL, self.wall)


def lower_limit(which: int, most: int) -> None:
    """Lower a limit; one that is lower already stays."""
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    try:
        resource.setrlimit(which, (most, most))
    except (ValueError, OSError):
        # macOS refuses a limit of address space; the others hold there.
        return


#: For text: searches, HTML, tables, mail.
OF_TEXT = ProcessLimits(memory=600_000_000, processor=10, wall=20.0)
#: For PDF and Office files, whose parsers need more.
OF_DOCUMENTS = ProcessLimits(memory=1_000_000_000, processor=20, wall=30.0)
