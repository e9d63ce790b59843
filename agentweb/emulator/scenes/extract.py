"""What of a conversation a summary keeps, found by pattern in whatever form the conversation is
shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from agentweb.emulator.scenes.jobs.notes import find_notes, find_ranks
from agentweb.emulator.scenes.view import Request, own_text, texts

_ID = re.compile(r"toolu_[\w-]+")
_URL = re.compile(r"https?://[^\s\"'<>)\]\\|,]+")
_FILE = re.compile(
    r"(?<![\w/.])[\w./-]*\w\.(?:md|txt|py|json|csv|html?|ya?ml|toml|cs|js|ts|sql|log|pdf|sh|go|rs|java)\b"
)
_TICKET = re.compile(
    r"\b(?:[A-Z]{2,}-\d+(?:-\d+)*|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|[0-9a-f]{12,40})\b"
)
_SPEAKER = re.compile(
    r"^\W{0,4}(?:\d+[.:)]?\s*)?(user|human|prompt|assistant|answer|tool|result)s?\b"
    r"[^:\n]{0,40}:\W{0,3}\s*(.*)$",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\brubric\b|\bcriteri|\bdecid|\bdecision|\bchose\b|\bbecause\b|\bmust\b|\bprefer|"
    r"\bat least\b|\bwanted\b|\bweight|"
    r"\d{1,3}\s?%|\bscore|\bfilter|\bTODO\b|\bopen question|\bnext step|\bremember\b|\bdeadline",
    re.IGNORECASE,
)
_ORDER = re.compile(r"summari[sz]e\s+(?:the|this)\s+conversation", re.IGNORECASE)
_LINE = 300
_REQUEST = 400


@dataclass(frozen=True)
class Extract:
    request: Request

    def sections(self) -> Iterator[tuple[str, Iterable[str]]]:
        yield "What the user asked for", self._requests()
        yield "Criteria and decisions", self._decisions()
        yield "Findings", self._findings()
        yield "To recall", self._recallable()
        yield "Files and addresses", self._places()
        yield "Identifiers", self._identifiers()
        yield "Where the work stands", self._status()

    @cached_property
    def lines(self) -> list[str]:
        """Every line in view, the order to summarise left out."""
        found: list[str] = []
        for message in self.request.messages:
            for text in texts(message):
                found += [
                    " ".join(line.split())
                    for line in text.splitlines()
                    if not _ORDER.search(line[:200])
                ]
        return [line for line in found if line]

    @cached_property
    def text(self) -> str:
        return "\n".join(self.lines)

    def _requests(self) -> list[str]:
        spoken = [
            m[2] for line in self.lines if (m := _SPEAKER.match(line)) and m[1].lower() in _PEOPLE
        ]
        if not spoken:
            own = (
                own_text(message) for message in self.request.messages if message["role"] == "user"
            )
            spoken = [" ".join(text.split()) for text in own if text and not _ORDER.search(text)]
        kept = [line[2:] for line in self._old_section("What the user asked for")]
        return _listed([*kept, *(text[:_REQUEST] for text in spoken)])

    def _decisions(self) -> list[str]:
        """Lines that decide something, a bare list under a rubric included; findings have their
        own place.
        """
        found: list[str] = []
        for line in self.lines:
            if (said := _SPEAKER.match(line)) and said[1].lower() in _PEOPLE:
                continue
            if (
                _DECISION.search(line)
                and len(line) < 600
                and not _is_finding(line)
                and not _is_markup(line)
            ):
                found.append(line[:_LINE].lstrip("-*# "))
        return _listed(found)[:60]

    def _findings(self) -> list[str]:
        ranks = {rank.url: rank for rank in find_ranks(self.text)}
        notes = {url: note for url, note in find_notes(self.text).items() if url not in ranks}
        scored = sorted(ranks.values(), key=lambda rank: (-rank.score, -rank.rate))
        lines = [f"- {rank.sentence()}{self._mark(rank.url)}" for rank in scored]
        return lines + [f"{note.line()}{self._mark(note.url)}" for note in notes.values()]

    def _mark(self, place: str) -> str:
        """How to get the original of a finding back."""
        ids = [key for key, where in self._originals.items() if where == place]
        return f' (recall "{ids[-1]}")' if ids else ""

    @cached_property
    def _originals(self) -> dict[str, str]:
        """What each recallable id stands for: the address or file named nearest to it."""
        found = {
            use.id: str(use.input.get("url") or use.input.get("path") or "")
            for use in self.request.uses
            if use.name not in {"write_file", "recall"}
        }
        for match in _ID.finditer(self.text):
            if (
                not found.get(match[0])
                and "write_file" not in self.text[match.start() - 40 : match.start()]
            ):
                found[match[0]] = _nearest(self.text, match.start(), match.end())
        return {key: place for key, place in found.items() if place}

    def _recallable(self) -> list[str]:
        told = {rank.url for rank in find_ranks(self.text)} | set(find_notes(self.text))
        latest = {place: key for key, place in self._originals.items() if place not in told}
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
        said = [
            m[2] for line in self.lines if (m := _SPEAKER.match(line)) and m[1].lower() in _MODEL
        ]
        if not said:
            said = [
                " ".join(text.split())
                for message in self.request.messages
                if message["role"] == "assistant" and (text := own_text(message))
            ]
        return _listed(text[:_REQUEST] for text in said[-2:])

    def _old_section(self, title: str) -> list[str]:
        """A section of an earlier summary in view, carried on."""
        found: list[str] = []
        inside = False
        for line in self.lines:
            if line.startswith(("## ", "[END")):
                inside = line == f"## {title}"
            elif inside and line.startswith("- "):
                found.append(line)
        return found


_PEOPLE = frozenset({"user", "human", "prompt"})
_MODEL = frozenset({"assistant", "answer"})


def _listed(items: Iterable[str]) -> list[str]:
    unique = dict.fromkeys(item.strip().removeprefix("- ") for item in items)
    return [f"- {item}" for item in unique if item]


def _is_finding(line: str) -> bool:
    return bool(find_ranks(line) or find_notes(line)) or line.startswith("|")


def _is_markup(line: str) -> bool:
    return line.startswith(("<", "{", "[", "write_file {", "## "))


def _nearest(text: str, start: int, end: int) -> str:
    """The address or file closest to a place in a text, within reach."""
    low, high = max(0, start - 300), min(len(text), end + 300)
    best = ""
    distance = 400
    for pattern in (_URL, _FILE):
        for found in pattern.finditer(text, low, high):
            away = found.start() - end if found.start() >= end else start - found.end()
            if 0 <= away < distance:
                best, distance = found[0].rstrip(".;:`*"), away
    return best
