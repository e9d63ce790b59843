"""Rebuilds the search index from the log."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from conversations.log.search_index import rebuild_index


class Command(BaseCommand):
    help = "Make the search index of all conversations anew."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{rebuild_index()} conversations indexed")
