"""What a verification found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    """One row that is not what it was, or is not there; `conversation` is a public id or ""."""

    table: str
    id: str
    what: str
    conversation: str = ""

    def __str__(self) -> str:
        place = f"conversation {self.conversation}: " if self.conversation else ""
        return f"{place}{self.table} {self.id}: {self.what}"


@dataclass(slots=True)
class Tally:
    """Counts of one verification, and its problems in the order they were found."""

    conversations: int = 0
    verified: int = 0
    mismatches: int = 0
    broken_chains: int = 0
    problems: int = 0

    @property
    def is_clean(self) -> bool:
        return self.problems == 0

    def __str__(self) -> str:
        chain = f"chain broken in {self.broken_chains}" if self.broken_chains else "chain intact"
        rest = "" if self.is_clean else f", {_count(self.problems, 'problem')}"
        checked = f"{_count(self.conversations, 'conversation')}, {_count(self.verified, 'call')}"
        odd = f"{self.mismatches} mismatch{'' if self.mismatches == 1 else 'es'}"
        return f"{checked} verified, {odd}, {chain}{rest}"

    def data(self) -> dict[str, Any]:
        return asdict(self)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
