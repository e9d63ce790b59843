"""Write the software bill of materials of the locked packages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from agentweb.doctor.bill_of_materials import build_bill


class Command(BaseCommand):
    help = (
        "Write the bill of materials as CycloneDX: every package of requirements.lock with its"
        " version, digests, licence and what it needs."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--dev", action="store_true", help="of the packages for development, too"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        lock = "requirements-dev.lock" if options["dev"] else "requirements.lock"
        bill = build_bill(Path(settings.BASE_DIR), lock)
        self.stdout.write(json.dumps(bill, indent=2, ensure_ascii=False))
