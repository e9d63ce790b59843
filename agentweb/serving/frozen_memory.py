"""Excludes the objects that exist after start-up from garbage collection.

A full collection visits every object and blocks the event loop meanwhile; nearly all of them exist
before the first request. Frozen objects cost nothing any more, and later ones are few.
"""

from __future__ import annotations

import gc

#: Thresholds of the garbage collector: new objects before a collection, and collections before one
#: of the next generation. Python's default of 700 is for scripts.
THRESHOLDS = 10_000, 20, 20


def freeze_memory() -> None:
    """Exempt all present objects from collection; call it once, when the server is ready."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
