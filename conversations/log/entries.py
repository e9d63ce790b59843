"""The log of a conversation in order, read in portions, for people."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TypeVar

from django.db.models import QuerySet

from conversations.log.findings import read_leniently
from conversations.models import Conversation, Message, Transformation

E = TypeVar("E", Message, Transformation)
PORTION = 50


def list_path_numbers(conversation: Conversation) -> set[int]:
    """Return the numbers of the entries on the shown path."""
    parents: dict[int, int] = {}
    for kind in (Message, Transformation):
        rows = kind._default_manager.filter(conversation=conversation)
        parents.update(rows.values_list("seq", "parent"))
    found: set[int] = set()
    at = conversation.tip
    while at in parents:
        found.add(at)
        at = parents[at]
    return found


def list_numbers_after(conversation: Conversation, seq: int) -> set[int]:
    """Return the number of an entry and those of the entries that follow it on any path."""
    links: list[tuple[int, int]] = []
    for kind in (Message, Transformation):
        rows = kind._default_manager.filter(conversation=conversation, seq__gt=seq)
        links += rows.values_list("seq", "parent")
    found = {seq}
    # An entry's parent has a lower number.
    for number, parent in sorted(links):
        if parent in found:
            found.add(number)
    return found


def iterate_messages(conversation: Conversation) -> Iterator[Message]:
    """Yield every message, of all branches."""
    return _iterate_portions(Message.objects.filter(conversation=conversation).order_by("seq"))


def iterate_transformations(conversation: Conversation) -> Iterator[Transformation]:
    """Yield every transformation, of all branches."""
    return _iterate_portions(
        Transformation.objects.filter(conversation=conversation).order_by("seq")
    )


def _iterate_portions(rows: QuerySet[E]) -> Iterator[E]:
    """Read the rows in portions, so that no cursor stays open while they are sent."""
    keys = list(rows.values_list("pk", flat=True))
    for at in range(0, len(keys), PORTION):
        yield from read_leniently(partial(list, rows.filter(pk__in=keys[at : at + PORTION])))
