"""A column of search terms for both databases: written and matched, never read back.

On PostgreSQL it is a `tsvector`, written verbatim, so that the database's parser does not split
words differently; on SQLite it is text, which an FTS5 table indexes (log/search_index.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

if TYPE_CHECKING:
    TermsBase = models.Field[tuple[str, ...], Any]
    LookupBase = models.Lookup[Any]
else:
    TermsBase, LookupBase = models.Field, models.Lookup


class TermsField(TermsBase):
    """Terms in their order: written as a tuple, matched, never read back."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "tsvector" if connection.vendor == "postgresql" else "text"

    def get_placeholder(self, value: Any, compiler: Any, connection: BaseDatabaseWrapper) -> str:
        return "%s::tsvector" if connection.vendor == "postgresql" else "%s"

    def get_db_prep_value(
        self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False
    ) -> str:
        if connection.vendor == "postgresql":
            return " ".join(f"'{term}':{at}" for at, term in enumerate(value, 1))
        return " ".join(value)


@TermsField.register_lookup
class Matches(LookupBase):
    """Rows that contain all phrases: pairs of terms and whether the last one is a prefix."""

    lookup_name = "matches"
    prepare_rhs = False

    def get_prep_lookup(self) -> Any:
        return self.rhs

    def as_postgresql(self, compiler: Any, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        column, _ = self.process_lhs(compiler, connection)
        phrases = [
            " <-> ".join(f"'{term}'" for term in terms) + (":*" if is_prefix else "")
            for terms, is_prefix in self.rhs
        ]
        wanted = " & ".join(f"({phrase})" for phrase in phrases)
        return f"{column} @@ %s::tsquery", [wanted]

    def as_sqlite(self, compiler: Any, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        table = self.lhs.target.model._meta.db_table
        phrases = [
            f'"{" ".join(terms)}"' + ("*" if is_prefix else "") for terms, is_prefix in self.rhs
        ]
        rows = f'SELECT rowid FROM "{table}_fts" WHERE "{table}_fts" MATCH %s'  # noqa: S608 - a name
        return f'"{self.lhs.alias}"."id" IN ({rows})', [" AND ".join(phrases)]
