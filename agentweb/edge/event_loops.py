"""The event loops of servers: uvloop's, which does in C what asyncio's loop does in Python.

Only the loops that carry turns and pages are uvloop's; those of commands, and the emulator's on its
own thread, are asyncio's.
"""

from __future__ import annotations

import sys
from asyncio import AbstractEventLoop
from typing import Any

import uvloop


def make_event_loop() -> AbstractEventLoop:
    """Return a new event loop for a process that serves."""
    return uvloop.new_event_loop()


def install_reactor() -> None:
    """Put Twisted's reactor, and so Daphne, on such a loop; call it before anything is served.

    Daphne makes a reactor on asyncio's loop when it is imported, as one of Django's apps, and runs
    the one that its module names.
    """
    import daphne.server
    from twisted.internet import asyncioreactor

    # Neither module has types.
    server: Any = daphne.server
    reactors: Any = asyncioreactor
    sys.modules.pop("twisted.internet.reactor", None)
    reactors.install(make_event_loop())
    server.reactor = sys.modules["twisted.internet.reactor"]
