"""`manage.py migrate` as a server calls it at its start."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import StateApps

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note each time that Django builds all models from migrations."""
    found: list[str] = []
    build = StateApps.__init__

    def note(self: StateApps, *args: Any, **kwargs: Any) -> None:
        found.append("built")
        build(self, *args, **kwargs)

    monkeypatch.setattr(StateApps, "__init__", note)
    return found


def test_a_start_with_nothing_to_migrate_builds_no_models(built: list[str]) -> None:
    call_command("migrate", verbosity=0, interactive=False)
    assert built == []


def test_a_person_who_migrates_is_told_what_there_is_to_do(built: list[str]) -> None:
    told = io.StringIO()
    call_command("migrate", verbosity=1, stdout=told)
    assert "No migrations to apply." in told.getvalue()
    assert built


def test_what_is_yet_to_be_migrated_is_migrated_at_a_start(built: list[str]) -> None:
    graph = MigrationLoader(connection).graph
    (last,) = graph.leaf_nodes("conversations")
    (before, *_) = graph.node_map[last].parents
    try:
        call_command("migrate", *before.key, verbosity=0)
        assert last not in MigrationRecorder(connection).applied_migrations()
    finally:
        built.clear()
        call_command("migrate", verbosity=0, interactive=False)
    assert built
    assert last in MigrationRecorder(connection).applied_migrations()
