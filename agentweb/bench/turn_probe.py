"""Counts what turns do in this process, and the processor time of each of their phases.

Statements, templates (an included one counts too), thread hops (work handed to a thread pool) and
new database connections are counted at the classes that do them. Phases are told apart by marks at
fixed points of a turn, so they mean something only where one turn runs at a time. What pages are
sent is rendered between those points and is a phase of its own.
"""

from __future__ import annotations

import functools
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from django.db.backends.signals import connection_created
from django.db.backends.utils import CursorWrapper
from django.template.base import Template

#: The phases in their order, by the name of the mark that ends each.
PHASES = {
    "asked": "after a turn: title, checks of open pages",
    "taken": "prompt taken: request, session, prompt and turn stored",
    "begun": "turn begins: claimed, settings and tools read",
    "prepared": "call prepared: conversation loaded, context decided",
    "opened": "call opened: reserved and recorded",
    "answered": "streaming: request sent, deltas read, text shown and saved",
    "ended": "settlement, answer stored, end",
}
PAGES = "pages: events and snapshots rendered"
#: Statements that only delimit a transaction; they are counted as transactions.
_LIMITS = ("BEGIN", "SAVEPOINT", "RELEASE", "ROLLBACK")


class TurnProbe:
    """The counts since it was installed; `seconds` is processor time by phase."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.statements: list[str] = []
        self.keeps_statements = False
        self._last = time.process_time()
        self._pages = 0.0

    @property
    def data(self) -> dict[str, Any]:
        return {"counts": dict(self.counts), "seconds": dict(self.seconds)}

    def mark(self, name: str) -> None:
        """End a phase."""
        now = time.process_time()
        self.seconds[PHASES[name]] += now - self._last - self._pages
        self.seconds[PAGES] += self._pages
        self._last, self._pages = now, 0.0
        if name == "ended":
            self.counts["turns"] += 1

    def count_statement(self, sql: str) -> None:
        word = sql.lstrip().partition(" ")[0]
        name = "transactions" if word in _LIMITS else "statements"
        if word not in _LIMITS[1:]:
            self.counts[name] += 1
        if self.keeps_statements:
            self.statements.append(sql)

    @contextmanager
    def rendering(self) -> Iterator[None]:
        """Count the time of this thread as that of pages."""
        began = time.thread_time()
        try:
            yield
        finally:
            self._pages += time.thread_time() - began


@contextmanager
def watch_turns() -> Iterator[TurnProbe]:
    """Count in all threads of this process."""
    probe, undo = TurnProbe(), list[Callable[[], None]]()

    def replace(owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        before = getattr(owner, name)
        setattr(owner, name, functools.wraps(before)(wrap(before)))
        undo.append(lambda: setattr(owner, name, before))

    def count_connection(**_: Any) -> None:
        probe.counts["connections"] += 1

    connection_created.connect(count_connection)
    replace(CursorWrapper, "_execute_with_wrappers", functools.partial(_count_statements, probe))
    replace(Template, "render", functools.partial(_count_calls, probe, "templates"))
    replace(ThreadPoolExecutor, "submit", functools.partial(_count_calls, probe, "hops"))
    _mark_phases(probe, replace)
    try:
        yield probe
    finally:
        for one in reversed(undo):
            one()
        connection_created.disconnect(count_connection)


def _mark_phases(probe: TurnProbe, replace: Callable[..., None]) -> None:
    from conversations.agent.loop import Runner
    from conversations.live import render
    from conversations.runtime.adapters import TurnCalls
    from conversations.runtime.turn import TurnRun

    replace(Runner, "run", functools.partial(_mark_before, probe, "begun"))
    replace(TurnCalls, "open", functools.partial(_mark_before, probe, "prepared"))
    replace(TurnCalls, "stream", functools.partial(_mark_before, probe, "opened"))
    replace(TurnCalls, "close", functools.partial(_mark_before, probe, "answered"))
    replace(TurnRun, "run", functools.partial(_mark_after, probe, "ended"))
    for name in ("render_events", "render_snapshot"):
        replace(render, name, functools.partial(_time_pages, probe))


def _count_statements(probe: TurnProbe, execute: Any) -> Any:
    def run(self: Any, sql: str, *args: Any, **kwargs: Any) -> Any:
        probe.count_statement(sql)
        return execute(self, sql, *args, **kwargs)

    return run


def _count_calls(probe: TurnProbe, name: str, function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        probe.counts[name] += 1
        return function(*args, **kwargs)

    return call


def _mark_before(probe: TurnProbe, name: str, function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        probe.mark(name)
        return function(*args, **kwargs)

    return call


def _mark_after(probe: TurnProbe, name: str, function: Callable[..., Awaitable[Any]]) -> Any:
    async def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return await function(*args, **kwargs)
        finally:
            probe.mark(name)

    return call


def _time_pages(probe: TurnProbe, function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        with probe.rendering():
            return function(*args, **kwargs)

    return call
