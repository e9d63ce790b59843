"""The database from coroutines: a bounded pool of threads, one connection each.

Channels' default would put every turn and socket of a process on one thread, and a context of its
own per turn leaks connections; a pool of eight does neither. Signs of life have a thread of their
own, so that no turn loses its lease because a thousand pages wait for what they missed.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import close_old_connections

P = ParamSpec("P")
T = TypeVar("T")
THREADS = 8
_pool = ThreadPoolExecutor(THREADS, thread_name_prefix="db")
_signs = ThreadPoolExecutor(1, thread_name_prefix="signs")


async def db(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a short piece of database work in a thread with a healthy connection."""
    return await _run(_pool, function, *args, **kwargs)


async def db_in_time(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a sign of life, which waits for nothing but other signs of life."""
    return await _run(_signs, function, *args, **kwargs)


async def _run(
    pool: ThreadPoolExecutor, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    def call() -> T:
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    return await sync_to_async(call, thread_sensitive=False, executor=pool)()
