"""Share room by water-filling: small sizes get what they need, large ones the same level."""

from __future__ import annotations

from collections.abc import Iterable


def find_water_level(sizes: Iterable[int], room: int) -> int:
    """Return the most that each may have so that all together fit; all the rest when they do."""
    ordered = sorted(sizes)
    for at, size in enumerate(ordered):
        left = len(ordered) - at
        if size * left > room:
            return room // left
        room -= size
    return max(room, ordered[-1] if ordered else 0)
