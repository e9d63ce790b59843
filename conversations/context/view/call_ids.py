"""Ids of tool calls that are unused in a request."""

from __future__ import annotations

from collections.abc import Set as AbstractSet


def find_free_id(wanted: str, taken: AbstractSet[str]) -> str:
    """Return the id, or the first of id_2, id_3 and so on that is not taken."""
    number, found = 2, wanted
    while found in taken:
        found = f"{wanted}_{number}"
        number += 1
    return found
