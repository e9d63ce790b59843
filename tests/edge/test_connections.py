"""A request's own thread takes its database connection with it."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

from tests.e2e import served

#: Requests, one after the other; threads that keep a connection: those of `conversations.db`.
REQUESTS, MOST_KEPT = 60, 12


def test_requests_leave_no_connection_behind(tmp_path: Path) -> None:
    running = served.start(tmp_path / "data")
    try:
        for number in range(REQUESTS):
            # A session is looked up in the database, by each request in a thread of its own.
            headers = {"Cookie": f"sessionid=unknown{number}"}
            request = urllib.request.Request(f"{running.url}/", headers=headers)
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert answer.status == 200
        folder = Path(f"/proc/{running.process.pid}/fd")
        files = [each.readlink().name for each in folder.glob("*")]
        assert sum(name == "agentweb.sqlite3" for name in files) <= MOST_KEPT
    finally:
        running.stop()
