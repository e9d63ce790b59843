"""The application's PostgreSQL role, which may append to the record and never change it."""

from __future__ import annotations

from typing import Any

from django.core.management import CommandError
from django.core.management.base import BaseCommand, CommandParser
from django.db import connection, transaction

from conversations.operations.db_role import (
    connect_as_owner,
    read_app_role,
    write_rights,
    write_role,
)


class Command(BaseCommand):
    help = (
        "The app's own role on PostgreSQL, which may add to the record and never change it: print"
        " the SQL for the role of DATABASE_URL, or run it as the owner of the tables"
        " (AGENTWEB_MIGRATE_DATABASE_URL). Its password is set by hand: ALTER ROLE ... PASSWORD."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--apply", action="store_true", help="run it instead of printing it")

    def handle(self, *args: Any, **options: Any) -> None:
        with connect_as_owner():
            if connection.vendor != "postgresql":
                raise CommandError("roles are for PostgreSQL: SQLite has triggers alone")
            owner, role = connection.settings_dict["USER"], read_app_role()
            if owner == role:
                raise CommandError(
                    "set AGENTWEB_MIGRATE_DATABASE_URL to the owner of the tables, and DATABASE_URL"
                    " to the role that the application is to run as"
                )
            statements = [write_role(role), *write_rights(role)]
            if not options["apply"]:
                self.stdout.write("".join(f"{statement};\n" for statement in statements))
                return
            with transaction.atomic(), connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
            self.stdout.write(f"The role {role} may add to the record and change none of it.")
