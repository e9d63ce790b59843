"""Runs one job of the measuring client, and measures what the site's processes use meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agentweb.bench.processes import ClientProcess
from agentweb.bench.site_under_test import Site

#: Seconds that connecting may take, and that a job may take longer than it was given.
_CONNECTING, _LATE = 180.0, 90.0
#: Seconds that answers which are late may take to their ends, and that comparing them may take.
_ENDING, _COMPARING = 300.0, 180.0


@dataclass(frozen=True, slots=True)
class Run:
    """What the client found, and the site's processes by name."""

    found: dict[str, Any]
    #: Sockets that were open when the job began.
    opened: int
    #: Seconds of the processor while it lasted.
    spent: dict[str, float]
    #: Bytes without a socket, with all of them open, and at the end.
    empty: dict[str, int]
    full: dict[str, int]
    memory: dict[str, int]

    def per_socket(self, part: str = "web") -> float:
        """Say how many kilobytes an open socket takes."""
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
    """Have the client do a job; `meanwhile` happens when it has begun.

    What it shows is compared with what is stored when all answers have ended, behind the measure.
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
    spent = {name: round(after[name] - before.get(name, 0.0), 2) for name in after}
    return Run(found, opened, spent, empty, full, memory)
