"""The database from coroutines: a bounded pool of threads, one connection each.

Channels' default would put every turn and socket of a process on one thread, and a context of its
own per turn leaks connections; a pool of eight does neither.
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


async def db(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a short piece of database work in a thread with a healthy connection."""

    def call() -> T:
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    return await sync_to_async(call, thread_sensitive=False, executor=_pool)()
