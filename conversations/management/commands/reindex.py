"""Makes the search index anew from the log."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from conversations.log.search_index import reindex_conversations


class Command(BaseCommand):
    help = "Make the search index of all conversations anew."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{reindex_conversations()} conversations indexed")
