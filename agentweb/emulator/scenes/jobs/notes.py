"""Notes on a job, written so that they can be parsed when the page is no longer in view."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from agentweb.emulator.scenes.jobs.page import field, plain

_NOTE = re.compile(
    r"Noted: (?P<title>[^\n]+?) — (?P<url>https?://\S+) — (?P<rate>\d+) EUR/day — "
    r"(?P<remote>[^—\n]+) — "
    r"stack: (?P<stack>[^—\n]+) — growth (?P<growth>\d)/5"
    r"(?: — company (?P<rating>\d)/5 — (?P<status>open|closed))?"
)
_ROW = re.compile(
    r"\|\s*(?P<score>\d{1,3})\s*\|\s*(?P<title>[^|\n]+?)\s*\|\s*(?P<url>https?://[^\s|]+)\s*"
    r"\|\s*(?P<rate>\d+) EUR/day\s*\|\s*(?P<remote>[^|\n]+?)\s*\|"
)
_RANKED = re.compile(
    r"\*\*(?P<title>[^*\n]+)\*\* — (?P<score>\d{1,3}) points — (?P<rate>\d+) EUR/day — "
    r"(?P<remote>[^—\n]+) — "
    r"(?P<url>https?://[^\s)>\]]+)"
)


@dataclass(frozen=True, slots=True)
class Note:
    """The facts of one job."""

    title: str
    url: str
    rate: int
    remote: str
    stack: tuple[str, ...]
    growth: int
    #: Rating and status from the checking tools; 0 and "" before they were called.
    rating: int = 0
    status: str = ""

    @property
    def is_checked(self) -> bool:
        return bool(self.rating and self.status)

    @property
    def company(self) -> str:
        return self.title.rpartition("(")[2].rstrip(")")

    @property
    def fully_remote(self) -> bool:
        return self.remote.startswith("fully remote")

    def line(self) -> str:
        checked = f" — company {self.rating}/5 — {self.status}" if self.is_checked else ""
        return (
            f"- Noted: {self.title} — {self.url} — {self.rate} EUR/day — {self.remote} — "
            f"stack: {', '.join(self.stack)} — growth {self.growth}/5{checked}"
        )


@dataclass(frozen=True, slots=True)
class Rank:
    """One scored job."""

    score: int
    title: str
    url: str
    rate: int
    remote: str

    def row(self) -> str:
        return f"| {self.score} | {self.title} | {self.url} | {self.rate} EUR/day | {self.remote} |"

    def sentence(self) -> str:
        return (
            f"**{self.title}** — {self.score} points — {self.rate} EUR/day — {self.remote} "
            f"— {self.url}"
        )


def read_page(url: str, text: str) -> Note | None:
    """Parse the facts of a job page; None if they are not all in view."""
    words = plain(text)
    title, rate, remote = (
        field(words, "Position"),
        field(words, "Day rate"),
        field(words, "Working model"),
    )
    amount, growth = re.match(r"\d+", rate), re.match(r"\d", field(words, "Growth"))
    if not (title and amount and remote and growth):
        return None
    stack = tuple(name.strip() for name in field(words, "Stack").split(",") if name.strip())
    return Note(title, url, int(amount[0]), remote, stack, int(growth[0]))


def find_notes(text: str) -> dict[str, Note]:
    """Return every note in a text, the latest for each address."""
    return {
        found["url"]: Note(
            found["title"],
            found["url"],
            int(found["rate"]),
            found["remote"].strip(),
            tuple(name.strip() for name in found["stack"].split(",")),
            int(found["growth"]),
            int(found["rating"] or 0),
            found["status"] or "",
        )
        for found in _NOTE.finditer(text)
    }


def find_ranks(text: str) -> list[Rank]:
    """Return every scored job in a text, from tables and lists."""
    return [
        Rank(
            int(found["score"]),
            found["title"],
            found["url"],
            int(found["rate"]),
            found["remote"].strip(),
        )
        for pattern in (_ROW, _RANKED)
        for found in pattern.finditer(text)
    ]


def table(ranks: Iterable[Rank]) -> str:
    head = "| Score | Title | URL | Rate | Remote |\n|---:|---|---|---|---|\n"
    return head + "\n".join(rank.row() for rank in ranks) + "\n"
