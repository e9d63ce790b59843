"""Runs one job of the measuring client, and measures what the site's processes use meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agentweb.bench.processes import ClientProcess
from agentweb.bench.site_under_test import Site

#: Seconds to connect, and seconds that a job may take beyond its own.
_CONNECTING, _LATE = 180.0, 90.0
#: Seconds for late answers to end, and for the comparison.
_ENDING, _COMPARING = 300.0, 180.0


@dataclass(frozen=True, slots=True)
class Run:
    """The client's findings, and figures of the site's processes by name."""

    found: dict[str, Any]
    #: Sockets that were open when the job began.
    opened: int
    #: Seconds of processor time during the job.
    spent: dict[str, float]
    #: Bytes without a socket, with all of them open, and at the end.
    empty: dict[str, int]
    full: dict[str, int]
    memory: dict[str, int]

    def per_socket(self, part: str = "web") -> float:
        """Return the kilobytes of memory that an open socket takes."""
        if part not in self.full or not self.opened:
            return 0.0
        return round((self.full[part] - self.empty[part]) / 1e3 / self.opened, 1)


def run_job(
    site: Site,
    job: dict[str, Any],
    meanwhile: Callable[[], object] | None = None,
    *,
    is_compared: bool = False,
) -> Run:
    """Have the client do a job; call `meanwhile` once it has begun.

    With `is_compared`, what the tabs show is compared with what is stored once all answers have
    ended, after the measurement.
    """
    client = ClientProcess("agentweb.bench.reader_process")
    try:
        empty = site.memory
        client.write_line(json.dumps(job | {"url": site.url, "is_compared": is_compared}))
        opened = json.loads(client.read_line(_CONNECTING))["ready"]
        full, before = site.memory, site.processor
        client.write_line("go")
        if meanwhile is not None:
            meanwhile()
        found = json.loads(client.read_line(job["seconds"] + _LATE))
        after, memory = site.processor, site.memory
        if is_compared:
            chats = sorted({chat["chat"] for chat in job["chats"] if chat})
            client.write_line(json.dumps(site.stored(chats, _ENDING) if chats else {}))
            found = json.loads(client.read_line(_COMPARING))
    finally:
        client.stop()
    spent = {name: round(after[name] - before.get(name, 0.0), 6) for name in after}
    return Run(found, opened, spent, empty, full, memory)
