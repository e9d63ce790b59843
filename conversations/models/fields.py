"""A column of search terms for both databases: written and matched, never read back.

On PostgreSQL it is a `tsvector`, written verbatim, so that the database's parser does not split
words differently; on SQLite it is text, which an FTS5 table indexes (log/search_index.py).

PostgreSQL keeps at most 256 positions of a lexeme and drops the others silently, which no phrase
would then find. A term that occurs more often therefore goes on as further lexemes: `the`, `the~1`,
`the~2`. A tilde is in no term (log/search_terms.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

if TYPE_CHECKING:
    TermsBase = models.Field[tuple[str, ...], Any]
    LookupBase = models.Lookup[Any]
else:
    TermsBase, LookupBase = models.Field, models.Lookup

#: Positions that PostgreSQL keeps of one lexeme.
MOST_POSITIONS = 256


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
            return " ".join(_list_lexemes(value))
        return " ".join(value)


def _list_lexemes(terms: Iterable[str]) -> Iterator[str]:
    """Yield each term as a lexeme of a `tsvector` with its position."""
    seen: Counter[str] = Counter()
    for at, term in enumerate(terms, 1):
        more = seen[term] // MOST_POSITIONS
        seen[term] += 1
        yield f"'{term}~{more}':{at}" if more else f"'{term}':{at}"


@TermsField.register_lookup
class Matches(LookupBase):
    """Rows that contain all phrases: pairs of terms and whether the last one is a prefix."""

    lookup_name = "matches"
    prepare_rhs = False

    def get_prep_lookup(self) -> Any:
        return self.rhs

    def as_postgresql(self, compiler: Any, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        column, _ = self.process_lhs(compiler, connection)
        wanted = " & ".join(f"({_write_phrase(*phrase)})" for phrase in self.rhs)
        return f"{column} @@ %s::tsquery", [wanted]

    def as_sqlite(self, compiler: Any, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        table = self.lhs.target.model._meta.db_table
        phrases = [
            f'"{" ".join(terms)}"' + ("*" if is_prefix else "") for terms, is_prefix in self.rhs
        ]
        rows = f'SELECT rowid FROM "{table}_fts" WHERE "{table}_fts" MATCH %s'  # noqa: S608 - a name
        return f'"{self.lhs.alias}"."id" IN ({rows})', [" AND ".join(phrases)]


def _write_phrase(terms: Iterable[str], is_prefix: bool) -> str:
    """Return a phrase as a `tsquery`; a prefix also matches the further lexemes of its terms."""
    *before, last = terms
    exact = [f"('{term}' | '{term}~':*)" for term in (before if is_prefix else terms)]
    return " <-> ".join([*exact, f"'{last}':*"] if is_prefix else exact)
