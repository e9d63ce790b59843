"""Run turns handed over by web processes: a Celery worker of threads around one event loop."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from agentweb.observability.metrics_page import serve_figures
from agentweb.serving.checks import START_CHECKS
from agentweb.serving.heartbeat import give_signs
from agentweb.serving.startup import demand_ready_database, demand_workers
from conversations.conf import conf

#: Threads for tasks other than turns.
OTHERS = 4


class Command(BaseCommand):
    help = "Scaled out: run turns, until it is told to stop."
    requires_system_checks = START_CHECKS

    def handle(self, *args: Any, **options: Any) -> None:
        demand_workers()
        demand_ready_database()
        serve_figures()
        from agentweb.celery import app

        with give_signs("worker"):
            app.worker_main(
                [
                    "worker", "--pool", "threads", "--loglevel", "WARNING",
                    "--concurrency", str(conf.process_turns + OTHERS),
                    "--without-gossip", "--without-mingle", "--without-heartbeat",
                ]
            )  # fmt: skip
