"""The memory of a server: what it holds from its start on is not looked through again.

A full collection goes through every object of the process and stops its event loop meanwhile;
nearly all of them were there before the first request. What is frozen costs nothing any more, and
what comes later is little.
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
