"""What a summary keeps of a conversation, found by pattern."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from agentweb.emulator.scenes.jobs.notes import find_notes, find_ranks
from agentweb.emulator.scenes.transcript_parser import Line, Who, read_lines
from agentweb.emulator.scenes.view import ASKED, Request

_ID = re.compile(r"toolu_[\w-]+")
_URL = re.compile(r"https?://[^\s\"'<>)\]\\|,]+")
_FILE = re.compile(
    r"(?<![\w/.-])[\w./-]*\w\.(?:md|txt|py|json|csv|html?|ya?ml|toml|cs|js|ts|sql|log|pdf|sh|go|rs)\b"
)
_TICKET = re.compile(
    r"\b(?:[A-Z]{2,}-\d+(?:-\d+)*|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|[0-9a-f]{12,40})\b"
)
_DECISION = re.compile(
    r"\brubric\b|\bcriteri|\bdecid|\bdecision|\bchose\b|\bbecause\b|\bmust\b|\bprefer|"
    r"\bat least\b|\bwanted\b|\bweight|"
    r"\d{1,3}\s?%|\bscore|\bfilter|\bTODO\b|\bopen question|\bnext step|\bremember\b|\bdeadline",
    re.IGNORECASE,
)
_LINE = 300
_REQUEST = 400
_REACH = 300


@dataclass(frozen=True)
class Extract:
    request: Request

    def sections(self) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield the sections, most important first: the last are omitted when there is no room."""
        yield ASKED, self._requests()
        yield "Named later", self._named()
        yield "Criteria and decisions", self._decisions()
        yield "Findings", self._findings()
        yield "To recall", self._recallable()
        yield "Files and addresses", self._places()
        yield "Identifiers", self._identifiers()
        yield "Where the work stands", self._status()

    @cached_property
    def lines(self) -> list[Line]:
        return read_lines(self.request)

    @cached_property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines if line.who != "order")

    def _by(self, *speakers: Who) -> list[str]:
        return [line.text for line in self.lines if line.who in speakers]

    def _requests(self) -> list[str]:
        """List requests in order; those in an earlier summary keep the place of that summary."""
        found: list[str] = []
        section = ""
        for line in self.lines:
            if line.who == "user":
                found.append(line.text[:_REQUEST])
            elif line.who == "summary" and line.text.startswith("## "):
                section = line.text.removeprefix("## ")
            elif line.who == "summary" and section == ASKED:
                found.append(line.text)
        return _listed(found)

    def _named(self) -> list[str]:
        """List what the instructions say later messages refer to."""
        return _listed(text for text in self._by("order") if text.startswith("- "))

    def _decisions(self) -> list[str]:
        lines = self._by("assistant", "result", "summary")
        return _listed(text[:_LINE].lstrip("-*# ") for text in lines if _decides(text))[:60]

    def _findings(self) -> list[str]:
        ranks = {rank.url: rank for rank in find_ranks(self.text)}
        notes = {url: note for url, note in find_notes(self.text).items() if url not in ranks}
        scored = sorted(ranks.values(), key=lambda rank: (-rank.score, -rank.rate))
        lines = [f"- {rank.sentence()}{self._mark(rank.url)}" for rank in scored]
        return lines + [f"{note.line()}{self._mark(note.url)}" for note in notes.values()]

    def _mark(self, place: str) -> str:
        """Return how to recall the original of a finding."""
        ids = [key for key, where in self._originals.items() if where == place]
        return f' (recall "{ids[-1]}")' if ids else ""

    @cached_property
    def _originals(self) -> dict[str, str]:
        """Map each id to the nearest address or file."""
        found = {
            use.id: str(use.input.get("url") or use.input.get("path") or "")
            for use in self.request.uses
            if use.name not in {"write_file", "recall"}
        }
        for match in _ID.finditer(self.text):
            before = self.text[max(0, match.start() - 40) : match.start()]
            if not found.get(match[0]) and "write_file" not in before:
                found[match[0]] = _nearest(self.text, match.start(), match.end())
        return {key: place for key, place in found.items() if place}

    def _recallable(self) -> list[str]:
        listed = {rank.url for rank in find_ranks(self.text)} | set(find_notes(self.text))
        latest = {place: key for key, place in self._originals.items() if place not in listed}
        return [f'- {place}: recall "{key}"' for place, key in latest.items()]

    def _places(self) -> list[str]:
        known = set(self._originals.values()) | {rank.url for rank in find_ranks(self.text)}
        files = [name.rstrip(".") for name in _FILE.findall(_URL.sub(" ", self.text))]
        urls = [url.rstrip(".;:`*") for url in _URL.findall(self.text)]
        return _listed(place for place in (*files, *urls) if place not in known)[:80]

    def _identifiers(self) -> list[str]:
        found = list(dict.fromkeys(_TICKET.findall(_ID.sub(" ", _URL.sub(" ", self.text)))))
        return [f"- {', '.join(found[at : at + 8])}" for at in range(0, min(len(found), 48), 8)]

    def _status(self) -> list[str]:
        texts = [text for text in self._by("assistant") if not _is_finding(text)]
        return _listed(text[:_REQUEST] for text in texts[-3:])


def _listed(items: Iterable[str]) -> list[str]:
    """Format as list lines without duplicates; the last occurrence stays."""
    texts = [item.strip().removeprefix("- ") for item in items]
    unique = list(dict.fromkeys(reversed(texts)))[::-1]
    return [f"- {text}" for text in unique if text and not text.startswith(("## ", "["))]


def _decides(line: str) -> bool:
    markup = line.startswith(("<", "{", "[calls", "## "))
    return bool(_DECISION.search(line)) and len(line) < 600 and not markup and not _is_finding(line)


def _is_finding(line: str) -> bool:
    return bool(find_ranks(line) or find_notes(line)) or line.startswith("|")


def _nearest(text: str, start: int, end: int) -> str:
    """Return the address or file nearest to an id: in its line, else shortly after it."""
    line = (text.rfind("\n", 0, start) + 1, text.find("\n", end) % (len(text) + 1))
    return _closest(text, start, end, *line) or _closest(text, start, end, end, end + _REACH)


def _closest(text: str, start: int, end: int, low: int, high: int) -> str:
    best, distance = "", len(text)
    for pattern in (_URL, _FILE):
        for found in pattern.finditer(text, low, min(high, len(text))):
            away = found.start() - end if found.start() >= end else start - found.end()
            if 0 <= away < distance:
                best, distance = found[0].rstrip(".;:`*"), away
    return best
