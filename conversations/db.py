"""Database access: a bounded pool of threads for coroutines, and transactions that are retried.

Channels' default runs all turns and sockets of a process on one thread, and a separate thread
context per turn leaks connections; a pool of eight threads avoids both. On SQLite, which has one
writer at a time and no server to wait for, the pool has three: with more, people's requests wait
behind them. (Beside another user at all limits, the p95 of storing a message was 0.4 s instead of
0.7 s, median of seven measurements.) Heartbeats have a thread of their own, so that no turn loses
its lease while a thousand pages read what they missed.

Work is taken in the order of its deadlines: steps that lead to the next words of an answer are due
at once, usual work after `USUAL` seconds, and the end of an answer after `LATE`. So when a hundred
people ask at once, a turn that has begun is answered before the next one begins, and no first word
waits behind the ends of answers that are shown already.

After a restart a thousand pages reconnect at once. Handshakes of sockets have threads of their own:
a page that waits too long for its handshake retries, and retries would soon take all the capacity.
Snapshots are read for a few pages at a time, because every thread that renders delays the loop, and
not at all for a page that is gone. A reader that holds a lock while it reads acquires a page slot
first.

PostgreSQL ends one of two transactions that wait for each other, or that cannot be put in an order.
Nothing of it was done, so `transact` does it again. In another's transaction it cannot, and leaves
that to the outermost one.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import random
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from functools import partial, wraps
from queue import PriorityQueue
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from asgiref.sync import SyncToAsync
from django.db import OperationalError, connection, transaction

logger = logging.getLogger("agentweb.db")

P = ParamSpec("P")
T = TypeVar("T")
THREADS = 3 if connection.vendor == "sqlite" else 8
HANDSHAKE_THREADS, PAGE_THREADS = 2, 3
#: Most retries of a transaction, and the longest pause in seconds before the first; it doubles.
RETRIES, PAUSE = 3, 0.05
#: Seconds after which work is due: usual work, and the end of an answer. Work is overtaken only by
#: what comes within that time, so none waits for ever.
USUAL, LATE = 2.0, 5.0
#: The name of all context variables of asgiref's Locals.
_LOCAL = "asgiref.local"
#: SQLSTATE of a deadlock and of a serialization failure.
_CONFLICTS = ("40P01", "40001")


class DueThreads:
    """Threads that take the work that is due first."""

    def __init__(self, threads: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._waiting: PriorityQueue[tuple[float, int, Future[Any], Callable[[], Any]]]
        self._waiting = PriorityQueue()
        self._numbers = itertools.count()

    def add(self, work: Callable[[], Any], due: float) -> Future[Any]:
        """Take work that is due at a time of the monotonic clock."""
        future: Future[Any] = Future()
        self._waiting.put((due, next(self._numbers), future, work))
        self._threads.submit(self._do_next)
        return future

    def _do_next(self) -> None:
        _, _, future, work = self._waiting.get_nowait()
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)
            # The error refers to this frame: both would stay until a full collection.
            del future, work


class _Due(Executor):
    """Gives work to the threads, due after `patience` seconds."""

    def __init__(self, threads: DueThreads, patience: float) -> None:
        self._threads, self._patience = threads, patience

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        due = time.monotonic() + self._patience
        return self._threads.add(partial(work, *args, **kwargs), due)


_threads = DueThreads(THREADS, "db")
_soon, _usual, _late = (_Due(_threads, patience) for patience in (0.0, USUAL, LATE))
_heartbeats = ThreadPoolExecutor(1, thread_name_prefix="signs")
_handshakes = ThreadPoolExecutor(HANDSHAKE_THREADS, thread_name_prefix="handshakes")
_pages = ThreadPoolExecutor(PAGE_THREADS, thread_name_prefix="pages")
#: One for each event loop, because tests have many.
_page_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def run_db(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a short piece of database work in a thread with a healthy connection."""
    return await _run(_usual, function, *args, **kwargs)


async def run_db_soon(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run what the next words of an answer wait for, before usual work."""
    return await _run(_soon, function, *args, **kwargs)


async def run_db_late(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run what no words wait for, behind usual work."""
    return await _run(_late, function, *args, **kwargs)


async def run_db_heartbeat(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a heartbeat in the heartbeats' own thread, behind no other database work."""
    return await _run(_heartbeats, function, *args, **kwargs)


async def run_db_handshake(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run the check of a handshake in the handshakes' own threads; cancelled with its caller."""
    return await _run(_handshakes, function, *args, **kwargs)


async def run_db_page_read(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a read for a page in the pages' own threads, unless the page is gone before."""
    return await _run(_pages, function, *args, **kwargs)


def find_page_slots() -> asyncio.Semaphore:
    """Return the semaphore of page readers: as many slots as there are threads for them."""
    return _page_slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(PAGE_THREADS))


async def _run(pool: Executor, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function, unless its caller is cancelled before it has started.

    As `sync_to_async` does, but for what makes that slow: the function gets no Local of asgiref
    (none has a value here but the language, and a reader's is set where text is rendered).
    """
    context, loop = copy_context(), asyncio.get_running_loop()
    call = partial(_call_for_loop, loop, function, *args, **kwargs)
    try:
        return await loop.run_in_executor(pool, context.run, call)
    finally:
        _take_over(context)


def _take_over(context: Context) -> None:
    """Set what the function has set; an asgiref Local belongs to its thread."""
    for variable, value in context.items():
        if variable.name != _LOCAL and variable.get(None) is not value:
            variable.set(value)


def _call_for_loop(
    loop: asyncio.AbstractEventLoop, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    # Where `async_to_sync` looks for the loop of its caller; else it runs a loop of its own, and
    # what it publishes there would be read by the pages of the other in the middle of a change.
    there = SyncToAsync.threadlocal
    there.main_event_loop, there.main_event_loop_pid = loop, os.getpid()
    # As `close_old_connections` does; there is only this one.
    connection.close_if_unusable_or_obsolete()
    try:
        return function(*args, **kwargs)
    finally:
        connection.close_if_unusable_or_obsolete()


def transact(function: Callable[P, T]) -> Callable[P, T]:
    """Run a function in one transaction, and again if the database ended it for another one.

    The function must not do anything but database work, and take no iterator, so that it can be
    run again. An object of the caller that it changes has to be as before at the start of each try.
    What fails for good raises what failed last; what fails after the commit is raised at once.
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        is_outermost = not connection.in_atomic_block
        committed: list[bool] = []
        for pause in [PAUSE * 2**at for at in range(RETRIES)] if is_outermost else ():
            try:
                with transaction.atomic():
                    # The first of all callbacks: a later one may fail with a conflict of its own.
                    transaction.on_commit(partial(committed.append, True))
                    return function(*args, **kwargs)
            except OperationalError as error:
                if committed or not _is_conflict(error):
                    raise
                logger.warning("%s is run again: %s", function.__name__, _first_line(error))
            time.sleep(random.uniform(0, pause))  # noqa: S311
        with transaction.atomic():
            return function(*args, **kwargs)

    return run


def _is_conflict(error: OperationalError) -> bool:
    return getattr(error.__cause__, "sqlstate", None) in _CONFLICTS


def _first_line(error: OperationalError) -> str:
    return str(error).partition("\n")[0]
