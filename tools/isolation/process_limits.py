"""What a process that handles foreign text or runs a foreign program may use."""

from __future__ import annotations

import resource
import signal
from dataclasses import dataclass

#: The signals by which the kernel ends a process at its limit of processor and of wall time.
OUT_OF_TIME = frozenset({int(signal.SIGXCPU), int(signal.SIGALRM), int(signal.SIGKILL)})


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    #: bytes of address space
    memory: int
    #: seconds of processor time, and of wall time (0: any)
    processor: int
    wall: float
    #: open files; bytes of a file that is written
    files: int = 64
    file_bytes: int = 0

    def apply(self) -> None:
        """Limit this process, for good."""
        for which, most in (
            (resource.RLIMIT_AS, self.memory),
            (resource.RLIMIT_NOFILE, self.files),
            (resource.RLIMIT_FSIZE, self.file_bytes),
            (resource.RLIMIT_CORE, 0),
        ):
            lower_limit(which, most)
        used = resource.getrusage(resource.RUSAGE_SELF)
        lower_limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + self.processor)
        if self.wall:
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
