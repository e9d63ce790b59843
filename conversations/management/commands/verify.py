"""Verifies the record: hash chains, every request rebuilt, every text's digest, the ledger."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.core.management import CommandError
from django.core.management.base import BaseCommand, CommandParser
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from conversations.audit.verify import Tally, verify_conversation, verify_everything
from conversations.models import Conversation


class Command(BaseCommand):
    help = (
        "Rebuild every request ever sent, of one conversation or of all, and check digests, chain"
        " and ledger; exit code 1 when something differs."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("conversation", nargs="?", help="its id as in its address; else all")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            # What is not there yet would count as damage.
            raise CommandError(
                "the database is not of this version: start `manage.py serve`, or run"
                " `manage.py migrate`",
                returncode=2,
            )
        tally = Tally()
        name = options["conversation"]
        found = verify_everything(tally)
        if name is not None:
            found = verify_conversation(_find_public_id(name), tally)
        rows = []
        for problem in found:
            if options["json"]:
                rows.append(asdict(problem))
            else:
                self.stdout.write(str(problem))
        summary = json.dumps(tally.data() | {"found": rows}) if options["json"] else str(tally)
        self.stdout.write(summary)
        if not tally.is_clean:
            raise SystemExit(1)


def _find_public_id(name: str) -> UUID:
    try:
        public_id = UUID(name)
    except ValueError:
        raise CommandError(f"{name!r} is no id of a conversation", returncode=2) from None
    if not Conversation.objects.filter(public_id=public_id).exists():
        raise CommandError(f"there is no conversation {public_id}", returncode=2)
    return public_id
