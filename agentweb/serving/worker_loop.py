"""The event loop of a worker: one thread in which all turns of the process run.

Celery delivers the ids of turns and manages the process. On shutdown it accepts no more tasks and
waits for the running ones while the loop drains.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
import threading
from functools import cached_property
from typing import Any

from agentweb.edge.event_loops import make_event_loop
from agentweb.edge.watchdog import Watchdog
from agentweb.serving import frozen_memory
from conversations.conf import conf


class WorkerLoop:
    """The event loop of a worker, from its start to its end."""

    def __init__(self) -> None:
        self._draining: concurrent.futures.Future[None] | None = None

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        # Not with the module: uvloop aborts a process that was forked after its loop was made.
        return make_event_loop()

    def demand_threads(self, worker: Any) -> None:
        """Refuse a pool that forks: its child processes would have no loop."""
        pool = str(getattr(worker, "pool_cls", ""))
        if "thread" not in pool.lower():
            sys.exit("agentweb's workers are threads: start them with manage.py worker")

    def start(self) -> None:
        """Begin to run turns; raises an error if this process cannot."""
        import conversations.claude.client  # noqa: F401  (imported now: its import takes seconds)
        from conversations.runtime.process import process

        frozen_memory.limit_arenas()
        threading.Thread(target=self._loop.run_forever, name="turns", daemon=True).start()
        work = process.start(runs_turns=True)
        asyncio.run_coroutine_threadsafe(work, self._loop).result()
        frozen_memory.freeze_memory()
        # Start-up may hold the loop.
        self._loop.call_soon_threadsafe(self._watch)

    def _watch(self) -> None:
        Watchdog(self._loop, conf.loop_block_ms).start()

    def greet(self) -> None:
        sys.stdout.write(f"agentweb's worker runs up to {conf.process_turns} turns\n")
        sys.stdout.flush()

    def leave(self) -> None:
        """Begin to drain; returns at once, since a signal handler calls it."""
        from conversations.runtime.process import process

        if self._draining is None:
            self._draining = asyncio.run_coroutine_threadsafe(process.drain(), self._loop)

    def end(self) -> None:
        """Wait for the drain, and stop."""
        self.leave()
        if self._draining is not None:
            self._draining.result()
        self._loop.call_soon_threadsafe(self._loop.stop)


loop = WorkerLoop()
