"""The Celery app of the scaled-out mode; its settings are Django's, named CELERY_.

A worker is a process of threads around one event loop: a task hands its turn to the loop and waits,
so a worker runs as many turns as it has threads, at the price of one process.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_ready, worker_shutdown, worker_shutting_down

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentweb.settings")
# `manage.py worker` has made the checks of a start; Celery would make all, those of the code too.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("agentweb")
# Without this only this thread would use the app; others would use a default without a broker.
app.set_default()
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect  # type: ignore[untyped-decorator]
def _begin(sender: Any = None, **_: Any) -> None:
    from agentweb.serving.worker_loop import loop

    loop.demand_threads(sender)
    try:
        loop.start()
    except Exception as error:
        # Celery would log the error and continue with a worker that never looks for queued turns.
        sys.exit(f"the worker could not start: {error}")


@worker_ready.connect  # type: ignore[untyped-decorator]
def _greet(**_: Any) -> None:
    from agentweb.serving.worker_loop import loop

    loop.greet()


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _leave(**_: Any) -> None:
    from agentweb.serving.worker_loop import loop

    loop.leave()


@worker_shutdown.connect  # type: ignore[untyped-decorator]
def _end(**_: Any) -> None:
    from agentweb.serving.worker_loop import loop

    loop.end()
