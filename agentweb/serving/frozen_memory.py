"""Excludes the objects that exist after start-up from garbage collection.

A full collection visits every object and blocks the event loop meanwhile; nearly all of them exist
before the first request. Frozen objects cost nothing any more, and later ones are few.
"""

from __future__ import annotations

import gc

#: New objects behind which there is a collection, and how many of those until an older generation
#: is looked at too. Python's own 700 are for scripts.
THRESHOLDS = 10_000, 20, 20


def freeze_memory() -> None:
    """Keep all that is there for good; call it once, when the server is ready."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
