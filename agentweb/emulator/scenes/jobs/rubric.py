"""The scoring rubric, read from the words in view, and the score of a job."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentweb.emulator.scenes.jobs.notes import Note

_WEIGHT = r"\b{name}\b\W{{0,6}}(\d{{1,3}})\s*%"
_STACK = re.compile(r"wanted stack:\s*([^\n]+)", re.IGNORECASE)
_PAY = re.compile(r"pay:\s*(\d{3,4}) to (\d{3,4}) a day", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rubric:
    stack: int
    remote: int
    pay: int
    growth: int
    wanted: tuple[str, ...]
    lowest: int
    highest: int
    #: The weight of the company's rating, if the criteria have one.
    rating: int = 0

    def words(self) -> str:
        rating = f", rating {self.rating} %" if self.rating else ""
        return (
            f"stack {self.stack} %, remote {self.remote} %, pay {self.pay} %, growth "
            f"{self.growth} %{rating}"
        )

    def score(self, note: Note) -> int:
        """Return the score, 0 to 100, rounded half up."""
        share = sum(name in note.stack for name in self.wanted) * 100 // max(1, len(self.wanted))
        place = 100 if note.fully_remote else 50 if note.remote.startswith("hybrid") else 0
        span = max(1, self.highest - self.lowest)
        pay = max(0, min(100, (note.rate - self.lowest) * 100 // span))
        total = (
            share * self.stack
            + place * self.remote
            + pay * self.pay
            + note.growth * 20 * self.growth
            + note.rating * 20 * self.rating
        )
        return (total + 50) // 100


def find_weights(text: str) -> tuple[int, ...] | None:
    """Return the four weights, if all of them are in the text."""
    found = [
        re.search(_WEIGHT.format(name=name), text, re.IGNORECASE)
        for name in ("stack", "remote", "pay", "growth")
    ]
    return tuple(int(match[1]) for match in found if match) if all(found) else None


def find_rubric(text: str) -> Rubric | None:
    """Return the rubric with its criteria; None if a part is not in the text."""
    weights, stack, pay = find_weights(text), _STACK.search(text), _PAY.search(text)
    if weights is None or stack is None or pay is None:
        return None
    wanted = tuple(name.strip(" *`") for name in stack[1].rstrip(". ").split(","))
    stack_weight, remote, pay_weight, growth = weights
    rating = re.search(_WEIGHT.format(name="rating"), text, re.IGNORECASE)
    return Rubric(
        stack_weight,
        remote,
        pay_weight,
        growth,
        wanted,
        int(pay[1]),
        int(pay[2]),
        int(rating[1]) if rating else 0,
    )
