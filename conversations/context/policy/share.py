"""A threshold as a share of the model's window, such as `60%`, in place of a number of tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

_WRITTEN = re.compile(r"\s*(\d{1,3})\s*%\s*")


@dataclass(frozen=True, slots=True)
class Share:
    """So many percent of a window, from 1 to 100."""

    percent: int

    def __str__(self) -> str:
        return f"{self.percent}%"

    def resolve(self, window: int, bounds: tuple[int, int]) -> int:
        """Return the share of a window in tokens, within the bounds of the number."""
        return min(max(window * self.percent // 100, bounds[0]), bounds[1])


def parse_share(value: object) -> Share | None:
    """Read `60%`; None for what is not written as a share of 1 to 100 percent."""
    found = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
    return Share(int(found[1])) if found and 1 <= int(found[1]) <= 100 else None
