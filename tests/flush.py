"""The flush after a test that commits: through the door of the append-only tables, seed kept.

Django empties every table after such a test. The triggers would refuse, so the door is opened for
the flush alone. What the migrations put in (models and prices, permissions) is put back at once by
a few inserts, which is quicker than Django's way and leaves the next test a migrated database.
"""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.core.management import call_command
from django.db import models, transaction
from django.test import TransactionTestCase

from conversations.services.guards import erasing

Seed = list[tuple[type[models.Model], list[models.Model]]]


def read_seed() -> Seed:
    """Give the rows of every table that is not empty after the migrations."""
    rows = [(kind, list(kind._base_manager.all())) for kind in apps.get_models()]
    return [(kind, found) for kind, found in rows if found]


def keep_seed(seed: Seed) -> None:
    """Make Django's flush go through the door and give the seed back."""

    def flush(_: TransactionTestCase) -> None:
        with erasing():
            options: dict[str, Any] = {"reset_sequences": False, "inhibit_post_migrate": True}
            call_command("flush", verbosity=0, interactive=False, **options)
        with transaction.atomic():
            for kind, rows in seed:
                kind._base_manager.bulk_create(rows)

    TransactionTestCase._fixture_teardown = flush  # type: ignore[attr-defined]
