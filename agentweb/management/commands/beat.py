"""Send what is due at fixed times to the workers: sweeps, erasures, verification."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from agentweb.serving.checks import START_CHECKS
from agentweb.serving.heartbeat import give_signs
from agentweb.serving.startup import demand_ready_database, demand_workers


class Command(BaseCommand):
    help = "Scaled out: send what is due at intervals; one for the site."
    requires_system_checks = START_CHECKS

    def handle(self, *args: Any, **options: Any) -> None:
        demand_workers()
        demand_ready_database()
        from agentweb.celery import app

        self.stdout.write("agentweb's beat is running")
        self.stdout.flush()
        with give_signs("beat"):
            schedule = str(settings.DATA_DIR / "beat")
            app.start(["beat", "--schedule", schedule, "--loglevel", "WARNING"])
