"""Copies of conversations in bulk, each with the true record of its own.

A copy has keys, owner, title, days and window of its own, and its chain is computed over its own
rows by the function that the product links with; so `verify` and `ledger` accept it. Rows are
inserted with the triggers on.
"""

# ruff: noqa: S608 - the names are those of our own tables
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import connection, transaction
from django.db.models import Max, Model

from conversations.budgets.windows import update_windows
from conversations.log.chain import OWNED, compute_link
from conversations.log.search_terms import split_terms
from conversations.models import (
    Blob,
    BudgetWindow,
    Chained,
    Conversation,
    Envelope,
    Reservation,
    SearchText,
    ToolCall,
    Turn,
    User,
    ViewCheckpoint,
)
from conversations.models.fields import TermsField
from conversations.models.periods import compute_bounds

#: What a conversation has beside its chained rows, with the lookup to it.
_BESIDE: dict[type[Model], str] = {
    ToolCall: "turn__conversation",
    Reservation: "call__conversation",
    SearchText: "conversation",
    ViewCheckpoint: "conversation",
}
#: Copies in one transaction.
_AT_ONCE = 25
_TITLE = "Öfen, naïve and 日本語"


#: Values of the rows that are to be inserted, by their kind.
_Batch = dict[type[Model], list[list[Any]]]


class _Row:
    """A row, its values as the database takes them, and the fields of which a copy has its own."""

    def __init__(self, row: Any) -> None:
        self.row, self.kind = row, type(row)
        fields = list(enumerate(self.kind._meta.concrete_fields))
        found = [(at, field, getattr(row, field.attname)) for at, field in fields]
        self.values = [field.get_db_prep_save(value, connection) for _, field, value in found]
        self.own = [one for one in found if one[2] is not None and _is_own(one[1], one[2])]
        self.places = {field.name: at for at, field in fields}
        if self.kind is SearchText:
            self.name(row.text)

    def name(self, text: str) -> None:
        """Give the index this text, and its words."""
        terms = tuple(term.text for term in split_terms(text))
        self.values[self.places["text"]] = text
        # What is read of them is not what is written.
        self.values[self.places["words"]] = TermsField().get_db_prep_value(terms, connection)


@dataclass(frozen=True, slots=True)
class Original:
    """A conversation that was played, its rows in the order in which they are copied."""

    conversation: _Row
    rows: tuple[_Row, ...]
    window: BudgetWindow
    #: The first key of each kind.
    first: dict[type[Model], int]

    @classmethod
    def read(cls, key: int) -> Original:
        """Read a conversation whose owner has no other."""
        conversation = Conversation.objects.get(pk=key)
        window = BudgetWindow.objects.select_related("budget").get(user=conversation.owner_id)
        links: list[Chained] = []
        for kind, path in OWNED.items():
            links += kind._default_manager.filter(**{path: key})
        rows: list[Model] = list(Turn.objects.filter(conversation=key).order_by("pk"))
        links.sort(key=lambda row: row.link)
        rows += links
        for other, path in _BESIDE.items():
            rows += other._default_manager.filter(**{path: key}).order_by("pk")
        first: dict[type[Model], int] = {Conversation: key}
        for row in rows:
            first[type(row)] = min(row.pk, first.get(type(row), row.pk))
        return cls(_Row(conversation), tuple(map(_Row, rows)), window, first)


class Copier:
    """Copies originals for people, as if they had talked on earlier days."""

    def __init__(self, people: Sequence[User]) -> None:
        self._people = people
        kinds: tuple[type[Model], ...] = (Conversation, Turn, *OWNED, *_BESIDE)
        self._last = {
            kind: kind._default_manager.aggregate(last=Max("pk"))["last"] or 0 for kind in kinds
        }
        self._windows: dict[tuple[int, datetime], BudgetWindow] = {}

    def add_copies(self, originals: Sequence[Original], count: int, days: int) -> None:
        """Add copies in turn, evenly over so many days up to that of the originals."""
        for start in range(0, count, _AT_ONCE):
            with transaction.atomic():
                batch: _Batch = {}
                ends = [
                    self._copy(
                        originals[at % len(originals)], at, timedelta(days * at // count), batch
                    )
                    for at in range(start, min(start + _AT_ONCE, count))
                ]
                for kind, values in batch.items():
                    _insert(kind, values)
                # A row that is not behind the end of its chain is refused.
                Conversation.objects.bulk_update(ends, ["links", "chain"])
        update_windows(self._windows.values(), "spent", "overrun", "limit")

    def _copy(
        self, original: Original, number: int, earlier: timedelta, batch: _Batch
    ) -> Conversation:
        """Collect the rows of a copy; return the end of its chain."""
        owner = self._people[number % len(self._people)]
        talk: Conversation = original.conversation.row
        window = self._find_window(original, owner, original.window.starts_at - earlier)
        copy = _Copy(
            {kind: self._last[kind] + 1 - first for kind, first in original.first.items()},
            {User: owner.pk, BudgetWindow: window.pk},
            earlier,
        )
        talk.title = f"Chat {number + 1:,}: {_TITLE}"
        head, chain = copy.write(original.conversation), ""
        for name, value in (("title", talk.title), ("links", 0), ("chain", ""), ("anchored", 0)):
            head[original.conversation.places[name]] = value
        batch.setdefault(Conversation, []).append(head)
        for one in original.rows:
            if one.kind is SearchText and one.row.seq == 0:
                one.name(talk.title)
            values = copy.write(one)
            if isinstance(one.row, Chained):
                chain = compute_link(chain, one.row)
                values[one.places["chain"]] = chain
            batch.setdefault(one.kind, []).append(values)
            self._last[one.kind] = max(self._last[one.kind], values[0])
        self._last[Conversation] = head[0]
        return Conversation(pk=head[0], links=talk.links, chain=chain)

    def _find_window(self, original: Original, owner: User, at: datetime) -> BudgetWindow:
        """Return the window of a moment, with the use of the copy added."""
        budget = original.window.budget
        starts_at, ends_at = compute_bounds(budget.period, budget.time_zone, at)
        window = self._windows.get((owner.pk, starts_at))
        if window is None:
            window = BudgetWindow.objects.create(
                budget=budget, user=owner, starts_at=starts_at, ends_at=ends_at
            )
            self._windows[owner.pk, starts_at] = window
        window.spent += original.window.spent
        window.overrun += original.window.overrun
        window.limit = original.window.limit
        return window


@dataclass(frozen=True, slots=True)
class _Copy:
    """What the rows of a copy have of their own."""

    #: How much is added to the keys of each kind, and the keys of the owner and the window.
    moved: dict[type[Model], int]
    keys: dict[type[Model], int]
    earlier: timedelta

    def write(self, one: _Row) -> list[Any]:
        """Give the row its new values, and return all as the database takes them."""
        found = one.values.copy()
        for at, field, old in one.own:
            value = self._renew(one.kind, field, old)
            setattr(one.row, field.attname, value)
            found[at] = value if type(value) is int else field.get_db_prep_save(value, connection)
        return found

    def _renew(self, kind: type[Model], field: Any, old: Any) -> Any:
        if field.primary_key:
            return old + self.moved[kind]
        if field.remote_field:
            target = field.related_model
            return self.keys[target] if target in self.keys else old + self.moved[target]
        return uuid4() if isinstance(old, UUID) else old - self.earlier


def _is_own(field: Any, value: Any) -> bool:
    """Return whether a copy has a value of its own there: keys, moments and identifiers."""
    if field.remote_field:
        # Texts are stored once, under their digests.
        return field.related_model not in (Blob, Envelope) and field.name != "actor"
    return bool(field.primary_key) or isinstance(value, datetime | UUID)


def _insert(kind: type[Model], rows: list[list[Any]]) -> None:
    """Insert rows as they are: the ORM would set their automatic times to now."""
    columns = ", ".join(f'"{field.column}"' for field in kind._meta.concrete_fields)
    marks = ", ".join(["%s"] * len(rows[0]))
    with connection.cursor() as cursor:
        cursor.executemany(
            f'INSERT INTO "{kind._meta.db_table}" ({columns}) VALUES ({marks})', rows
        )
