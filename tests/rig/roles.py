"""What the processes of a rig run: the commands of the product, with toy tools and halts added.

A halt is for moments that are not visible from outside: the process writes the halt's name into
`AGENTWEB_RIG_HALTED` when it reaches the place and waits there to be killed.
"""

from __future__ import annotations

import functools
import importlib
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

#: Names the file in which a halting process records it.
HALTED = "AGENTWEB_RIG_HALTED"


def serve(port: int, *, sweep: float, halts: Sequence[str] = ()) -> None:
    """Run `manage.py serve`."""
    _begin(sweep, halts)
    _manage("serve", "--port", str(port))


def app(port: int) -> None:
    """Run `manage.py serve` unchanged."""
    _own_names()
    _manage("serve", "--port", str(port))


def worker(*, sweep: float, halts: Sequence[str] = (), redelivers: float = 0) -> None:
    """Run `manage.py worker`.

    With `redelivers` a task is acknowledged when it is over, and delivered again if that takes
    longer than this many seconds.
    """
    _begin(sweep, halts)
    if redelivers:
        _redeliver(redelivers)
    _manage("worker")


def beat() -> None:
    """Run `manage.py beat`."""
    _manage("beat")


def migrate() -> None:
    """Run `manage.py migrate`."""
    _manage("migrate", "--verbosity", "0")


def manage(arguments: Sequence[str]) -> None:
    """Run any other command."""
    _manage(*arguments)


def _manage(*arguments: str) -> None:
    from django.core.management import execute_from_command_line

    sys.argv = ["manage.py", *arguments]
    execute_from_command_line(sys.argv)


def _begin(sweep: float, halts: Sequence[str]) -> None:
    from conversations.runtime import process
    from tests.rig.heavy import HEAVY
    from tests.support.toy_tools import TOYS
    from tools.framework.registry import TOOLS

    _own_names()
    process.SWEEP_SECONDS = sweep
    # Half a second of the processor that few cases need: the first isolated call starts it, too.
    process.start_call_server = lambda: None
    TOOLS.update(TOYS | HEAVY)
    for halt in halts:
        _install(halt)


def _own_names() -> None:
    """Use names of this process, not those of the template that imported the modules."""
    from conversations.live import relay
    from conversations.runtime import supervisor

    supervisor.OWNER = f"{socket.gethostname()}:{os.getpid()}"
    relay.relay.name = uuid4().hex


def _redeliver(seconds: float) -> None:
    from celery.signals import task_prerun

    from agentweb.celery import app

    options = {"visibility_timeout": seconds, "unacked_restore_interval": 0.1}
    app.conf.broker_transport_options |= options
    app.conf.task_acks_late = True
    task_prerun.connect(_note_task, weak=False)


def _note_task(args: Sequence[object], **_: object) -> None:
    _note(f"task of {args[0]}")


def _note(text: str) -> None:
    with Path(os.environ[HALTED]).open("a", encoding="ascii") as file:
        file.write(f"{text}\n")


def _install(halt: str) -> None:
    """Install a halt at "module:function:before" or "module:function:after"."""
    name, function, when = halt.split(":")
    module = importlib.import_module(name)
    setattr(module, function, _halting(getattr(module, function), halt, before=when == "before"))


def _halting(function: Callable[..., Any], halt: str, *, before: bool) -> Callable[..., Any]:
    @functools.wraps(function)
    def halting(*args: Any, **kwargs: Any) -> Any:
        if not before:
            function(*args, **kwargs)
        _note(halt)
        time.sleep(600)

    return halting
