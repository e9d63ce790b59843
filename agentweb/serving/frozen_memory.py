"""How a server uses memory: what is collected, and what is given back.

The objects that exist after start-up are excluded from garbage collection: a full collection visits
every object and blocks the event loop meanwhile, and nearly all of them exist before the first
request. Frozen objects cost nothing any more, and later ones are few.

The C library may use one arena only: by default each of many threads has one, whose free memory
nobody else uses. Python runs one thread at a time, so nobody waits for it. What 200 answers at once
add is measured by `manage.py bench soak`.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys

#: Thresholds of the garbage collector: new objects before a collection, and collections before one
#: of the next generation. Python's default of 700 is for scripts.
THRESHOLDS = 10_000, 20, 20
#: The parameter of `mallopt` for the most arenas.
_ARENA_MAX = -8


def freeze_memory() -> None:
    """Exempt all present objects from collection; call it once, when the server is ready."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


def limit_arenas() -> None:
    """Have the C library use one arena, where it is glibc; call it before threads start."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(AttributeError):  # musl has no arenas
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
