"""Refuses Django's dump: it breaks the chain of every conversation, without a word."""

from __future__ import annotations

from typing import Any

from django.core.management import CommandError
from django.core.management.commands import dumpdata

RIGHT_WAY = (
    "dumpdata does not keep the record: chains and digests break. To change between SQLite and"
    " PostgreSQL use `manage.py move --to URL`, for a copy of the site `manage.py backup FILE`, for"
    " one conversation `manage.py export_conversation`."
)


class Command(dumpdata.Command):
    help = "Refused: manage.py move and manage.py backup keep the record, dumpdata breaks it."

    def handle(self, *args: Any, **options: Any) -> None:
        raise CommandError(RIGHT_WAY)
