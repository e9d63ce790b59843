"""A worker that halts at a chosen boundary of a tool round, so that it can be killed there.

Run as `python -m tests.faults.halting_worker`, it forks a worker for each line of its input,
because starting one takes seconds, mostly for imports. A line names a boundary and an environment.
The worker runs the turns that wait in the database. At the boundary it prints `here` and its
process id, and waits to be killed; `gone` is printed once it is.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

#: Before a call is started; before its tool runs; after its effect; after its result is stored;
#: after all results are stored. `written` is before the result of any tool is stored.
BORDERS = ("planned", "started", "effect", "finished", "results")


def main() -> None:
    import django

    django.setup()
    from conversations.runtime import supervisor  # noqa: F401

    for line in sys.stdin:
        border, environment = json.loads(line)
        child = os.fork()
        if child == 0:
            os.environ.update(environment)
            halt_at(border)
            asyncio.run(_serve())
        os.waitpid(child, 0)
        os.write(1, b"gone\n")


def halt_at(border: str) -> None:
    from conversations.log import append
    from conversations.turns import tool_calls
    from tests.support import toy_tools
    from tools.framework.registry import TOOLS

    TOOLS.update(toy_tools.TOYS)
    match border:
        case "planned":
            tool_calls.start_tool = _halting(tool_calls.start_tool, before=True)
        case "started":
            tool_calls.start_tool = _halting(tool_calls.start_tool)
        case "effect":
            toy_tools._note = _halting(toy_tools._note)
        case "written":
            tool_calls.finish_tool = _halting(tool_calls.finish_tool, before=True)
        case "finished":
            tool_calls.finish_tool = _halting(tool_calls.finish_tool)
        case "results":
            append.store_results = _halting(append.store_results)
    asyncio.run(_serve())


def _halting(function: Callable[..., Any], *, before: bool = False) -> Callable[..., Any]:
    @functools.wraps(function)
    def halting(*args: Any, **kwargs: Any) -> Any:
        if not before:
            function(*args, **kwargs)
        os.write(1, f"here {os.getpid()}\n".encode())
        time.sleep(600)

    return halting


async def _serve() -> None:
    from conversations.runtime.supervisor import Supervisor

    await Supervisor().start(is_alone=True)
    await asyncio.sleep(600)


if __name__ == "__main__":
    main()
