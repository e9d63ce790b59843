"""Distribute room by water-filling: small sizes get what they need, large ones the same level."""

from __future__ import annotations

from collections.abc import Iterable


def find_water_level(sizes: Iterable[int], room: int) -> int:
    """Return the level at which all sizes fit together; the remaining room if they fit anyway."""
    ordered = sorted(sizes)
    for at, size in enumerate(ordered):
        left = len(ordered) - at
        if size * left > room:
            return room // left
        room -= size
    return max(room, ordered[-1] if ordered else 0)
