"""A worker that halts at one border of a tool round, so that it can be killed just there.

Started as `python -m tests.faults.dying BORDER`: it runs what waits in the database of its
environment, prints one line when it has come to the border, and waits there to be killed.
"""

from __future__ import annotations

import asyncio
import functools
import os
import sys
import time
from collections.abc import Callable
from typing import Any

#: Before a call is started; before its tool runs; after what it did; after its result is stored;
#: after all results are.
BORDERS = ("planned", "started", "effect", "finished", "results")


def main(border: str) -> None:
    import django

    django.setup()
    from conversations.services import log, toolcalls
    from tests import toys
    from tools.registry import TOOLS

    TOOLS.update(toys.TOYS)
    match border:
        case "planned":
            toolcalls.start_tool = _halting(toolcalls.start_tool, before=True)
        case "started":
            toolcalls.start_tool = _halting(toolcalls.start_tool)
        case "effect":
            toys._note = _halting(toys._note)
        case "finished":
            toolcalls.finish_tool = _halting(toolcalls.finish_tool)
        case "results":
            log.store_results = _halting(log.store_results)
    asyncio.run(_serve())


def _halting(function: Callable[..., Any], *, before: bool = False) -> Callable[..., Any]:
    @functools.wraps(function)
    def halting(*args: Any, **kwargs: Any) -> Any:
        if not before:
            function(*args, **kwargs)
        os.write(1, b"here\n")
        time.sleep(600)

    return halting


async def _serve() -> None:
    from conversations.turns import Supervisor

    await Supervisor().start(is_alone=True)
    await asyncio.sleep(600)


if __name__ == "__main__":
    main(sys.argv[1])
