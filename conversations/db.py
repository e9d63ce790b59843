"""The database from coroutines: a bounded pool of threads, one connection each.

Channels' default would put every turn and socket of a process on one thread, and a context of its
own per turn leaks connections; a pool of eight does neither. On SQLite, where one writes at a time
and nobody waits for a server, it is one of three: people's own requests wait behind whatever more
of them work (beside a neighbour at all limits p95 of storing a message was 0.4 s instead of 0.7, in
the middle of seven measurements). Signs of life have a thread of their own, so that no turn loses
its lease because a thousand pages wait for what they missed.

A thousand pages come back at once after a restart. What opens their sockets has threads of its own:
a page that waits too long for that gives up and asks again, and such questions would soon be all
there is to do. What the pages missed is read a few at a time, because every thread that renders
keeps the loop waiting, and not at all for a page that is gone. Whoever holds up others while it
reads takes its place among the readers first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from asgiref.sync import sync_to_async
from django.db import close_old_connections, connection

P = ParamSpec("P")
T = TypeVar("T")
THREADS = 3 if connection.vendor == "sqlite" else 8
HANDSHAKE_THREADS, PAGE_THREADS = 2, 3
_pool = ThreadPoolExecutor(THREADS, thread_name_prefix="db")
_heartbeats = ThreadPoolExecutor(1, thread_name_prefix="signs")
_handshakes = ThreadPoolExecutor(HANDSHAKE_THREADS, thread_name_prefix="doors")
_pages = ThreadPoolExecutor(PAGE_THREADS, thread_name_prefix="pages")
#: Of each loop, of which tests have many.
_page_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def run_db(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a short piece of database work in a thread with a healthy connection."""
    return await _run(_pool, function, *args, **kwargs)


async def run_db_heartbeat(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a sign of life, which waits for nothing but other signs of life."""
    return await _run(_heartbeats, function, *args, **kwargs)


async def run_db_handshake(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Find out who opens a socket, which waits for nothing but other handshakes."""
    return await _run_cancellable(_handshakes, function, *args, **kwargs)


async def run_db_page_read(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Read what a page shows, in its turn among pages; nothing, when it is gone by then."""
    return await _run_cancellable(_pages, function, *args, **kwargs)


def get_page_slots() -> asyncio.Semaphore:
    """Give the places of those who read for pages: as many as are read for at a time."""
    return _page_slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(PAGE_THREADS))


async def _run(
    pool: ThreadPoolExecutor, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    call = partial(_call_with_connection, function, *args, **kwargs)
    return await sync_to_async(call, thread_sensitive=False, executor=pool)()


async def _run_cancellable(
    pool: ThreadPoolExecutor, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run what need not be begun any more when nobody waits for it."""
    call = partial(_call_with_connection, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(pool, copy_context().run, call)


def _call_with_connection(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    close_old_connections()
    try:
        return function(*args, **kwargs)
    finally:
        close_old_connections()
