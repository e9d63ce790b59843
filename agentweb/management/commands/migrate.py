"""Migrate as the owner of the tables, one process at a time, without a timeout.

If two servers start at once, the second waits and finds nothing left to do. An interrupted run can
be repeated: each migration is one transaction together with the record that it was applied, and
triggers and rights are set up again after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.core.management import CommandError
from django.core.management.commands import migrate
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from agentweb.postgres_timeouts import lift_timeouts
from agentweb.serving.startup import demand_reachable
from conversations.operations.db_role import RoleMissing, connect_as_owner

_LOCK = 0x61_67_77_6D


class Executor(MigrationExecutor):
    """Records a migration in its own transaction, indexes and foreign keys included.

    Django runs those at the end and records the migration after its transaction: killed in between,
    it would start again with tables that already exist.
    """

    def migration_plan(self, targets: Any, clean_start: bool = False) -> Any:
        """Go to a step that a squashed migration replaces by the steps themselves, either way."""
        loader: Any = self.loader
        if any(name and (app, name) not in loader.graph.nodes for app, name in targets):
            loader.replace_migrations = False
            loader.build_graph()
            for key, squashed in loader.replacements.items():
                loader.graph.remove_replacement_node(key, squashed.replaces)
        return super().migration_plan(targets, clean_start)

    def apply_migration(
        self, state: Any, migration: Any, fake: bool = False, fake_initial: bool = False
    ) -> Any:
        if fake or fake_initial or not migration.atomic:
            return super().apply_migration(state, migration, fake, fake_initial)
        tell = self.progress_callback or (lambda *_: None)
        tell("apply_start", migration, fake)
        with self.connection.schema_editor(atomic=True) as editor:
            state = migration.apply(state, editor)
            while editor.deferred_sql:
                editor.execute(editor.deferred_sql.pop(0), None)
            self.record_migration(migration)  # type: ignore[call-arg]
        tell("apply_success", migration, fake)
        return state


# The command has no other way to replace it.
migrate.MigrationExecutor = Executor  # type: ignore[attr-defined]


class Command(migrate.Command):
    def execute(self, *args: Any, **options: Any) -> Any:
        # The checks before the migration use the database too.
        with connect_as_owner():
            demand_reachable()
            return super().execute(*args, **options)

    def handle(self, *args: Any, **options: Any) -> None:
        with lift_timeouts(connection), _alone():
            before = MigrationRecorder(connection).applied_migrations().keys()
            try:
                if _is_start(options) and _has_no_plan():
                    emit_post_migrate_signal(0, interactive=False, db=connection.alias)
                else:
                    super().handle(*args, **options)
            except RoleMissing as error:
                raise CommandError(str(error)) from error
            if before and before != MigrationRecorder(connection).applied_migrations().keys():
                _count_rows_again()


def _is_start(options: Mapping[str, Any]) -> bool:
    """Return whether all is to be migrated without a word, as at the start of a server."""
    asked = ("app_label", "plan", "check_unapplied", "prune", "run_syncdb")
    return options["verbosity"] == 0 and not any(options[name] for name in asked)


def _has_no_plan() -> bool:
    """Return whether the database is that of this code; triggers and rights may still not be.

    Django builds all models twice before it finds that out, which takes longer than all else.
    """
    executor = Executor(connection)
    loader: Any = executor.loader
    loader.check_consistent_history(connection)
    return not loader.detect_conflicts() and not executor.migration_plan(loader.graph.leaf_nodes())


def _count_rows_again() -> None:
    """Let SQLite look at its tables: one that was altered is a new one, of which it knows nothing.

    Without that, lists read whole tables. PostgreSQL does it by itself.
    """
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA analysis_limit = 1000")
            cursor.execute("ANALYZE")


@contextmanager
def _alone() -> Iterator[None]:
    if connection.vendor != "postgresql":
        yield
        return
    # A session lock: the server releases it when this process dies.
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = 0")
        cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
    try:
        yield
    finally:
        if connection.connection is not None and connection.is_usable():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
                cursor.execute("RESET lock_timeout")
