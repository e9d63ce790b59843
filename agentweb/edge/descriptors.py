"""File descriptors: raises the limit, and reserves some that visitors cannot use.

A process without free descriptors can neither open its database nor call the model, so it stops
working for everybody. So a connection whose descriptor is in the reserved range is closed at once.
The kernel assigns the lowest free number, so the number shows how many are in use.
"""

from __future__ import annotations

import logging
import resource
import time

logger = logging.getLogger("agentweb.edge")
#: The limit is raised to this at most; some systems offer a thousand million.
MOST = 65_536
#: Most descriptors that are reserved for the process itself.
MOST_KEPT = 1_024
#: Seconds between two equal log lines.
QUIET_SECONDS = 30


class Descriptors:
    """The descriptor limit of this process, and when it was last reported as reached."""

    def __init__(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        most = MOST if soft == resource.RLIM_INFINITY else soft
        self.most_for_visitors = most - min(most // 4, MOST_KEPT)
        self._warned_at = float("-inf")

    def has_room(self, number: int) -> bool:
        """Return whether a connection may have this descriptor; warn if not."""
        if number < self.most_for_visitors:
            return True
        if time.monotonic() - self._warned_at > QUIET_SECONDS:
            self._warned_at = time.monotonic()
            logger.warning(
                "%d descriptors are in use: new connections are closed until some end;"
                " raise the limit of open files (ulimit -n)",
                number,
            )
        return False
