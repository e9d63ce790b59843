"""Host names to addresses, off the event loop and bounded.

A lookup that hangs cannot be cancelled, only abandoned: so lookups have threads of their own, and
when all of them hang, lookups fail while files and the rest of the process go on.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]

PATIENCE = 5.0
POOL = ThreadPoolExecutor(max_workers=8, thread_name_prefix="resolve")


async def resolve_by_system(host: str, port: int) -> list[str]:
    """Return all addresses of a name in the system's order of preference; [] if there is none."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(PATIENCE):
            found = await loop.run_in_executor(POOL, _lookup, host, port)
    except (OSError, UnicodeError, TimeoutError):
        return []
    return list(dict.fromkeys(found))


def _lookup(host: str, port: int) -> list[str]:
    # Bytes, so that the name is not encoded by another IDNA rule between check and lookup.
    found = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]
