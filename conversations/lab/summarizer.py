"""What writes the summaries of a replay: a fixed extract, an injected model, or nothing.

The extract is not good prose, but useful: it keeps what the prompt asks to keep (the names that
later messages refer to, what the user said, decisions, addresses and numbers) within the requested
length, and is the same text on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from conversations.context.pipeline import SummaryReply, SummaryWanted
from conversations.context.text.facts_in_text import count_names
from conversations.context.tokens.estimate import estimate_text

Summarizer = Callable[[SummaryWanted], SummaryReply | None]
#: Replaces the model: takes system, text and max_tokens; returns text and stop reason, or None.
StandIn = Callable[[str, str, int], tuple[str, str] | None]

_KEEP = re.compile(r"^Later messages still refer to these.*:\n((?:- .*\n?)+)", re.MULTILINE)
_LEFT_OUT = re.compile(r"^Your previous attempt was not accepted: .*\n((?:- .*\n?)+)", re.MULTILINE)
_SECTION = re.compile(r"^<(first_request|previous_summary|part|transcript)>$", re.MULTILINE)
_DECISION = re.compile(
    r"\b(?:decid|chose|choose|because|must|should|prefer|instead|todo|next step|open question"
    r"|fixed|failed|works|done|agreed|constraint)",
    re.IGNORECASE,
)
_LONGEST_LINE = 240


def fail_summary(wanted: SummaryWanted) -> SummaryReply | None:
    """Return None, like a call that failed."""
    del wanted
    return None


def use_stand_in(stand_in: StandIn) -> Summarizer:
    """Return a summarizer that uses a replacement of the model."""

    def ask(wanted: SummaryWanted) -> SummaryReply | None:
        summary = stand_in(wanted.system, wanted.text, wanted.max_tokens)
        return None if summary is None else SummaryReply(*summary)

    return ask


def extract_summary(wanted: SummaryWanted) -> SummaryReply:
    """Return an extract of at most a quarter of the transcript."""
    room = min(wanted.max_tokens * 3 // 4, estimate_text(wanted.text) // 4)
    kept: list[str] = []
    for heading, share, lines in _list_parts(wanted.text):
        part = list(_fit_lines(lines, room * share // 100))
        if part:
            kept += [heading, *part]
    return SummaryReply("\n".join(kept) or "Nothing to keep.", "end_turn")


def _list_parts(text: str) -> Iterator[tuple[str, int, Iterable[str]]]:
    """Yield headings, shares of the length in percent, and lines, the most important first."""
    sections = _read_sections(text)
    transcript = sections.get("transcript", "")
    required = "\n".join(match[1] for found in (_KEEP, _LEFT_OUT) for match in found.finditer(text))
    yield "Names still in use:", 100, dict.fromkeys(required.splitlines())
    before = sections.get("previous_summary", "").splitlines()
    # Without a transcript the request merges parts; with one they are context only.
    before += [] if transcript else sections.get("part", "").splitlines()
    yield "Before:", 30 if transcript else 80, before
    yield "The user said:", 20, _list_first_lines(transcript, "[user]")
    decisions = (line for line in transcript.splitlines() if _DECISION.search(line))
    yield "Decided and found:", 20, (line for line in decisions if not line.startswith("[result"))
    counted = count_names(transcript).most_common()
    yield "Names:", 30, (f"- {name}" for name, _ in counted)


def _read_sections(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in _SECTION.finditer(text):
        end = text.find(f"\n</{match[1]}>", match.end())
        section = text[match.end() + 1 : end if end >= 0 else None]
        found[match[1]] = "\n".join(filter(None, [found.get(match[1]), section]))
    return found


def _list_first_lines(transcript: str, speaker_name: str) -> Iterator[str]:
    """Yield the first line of each message of one side, without results."""
    for part in transcript.split("\n\n"):
        speaker, _, words = part.partition("\n")
        if speaker == speaker_name and not words.startswith("[result"):
            yield words.partition("\n")[0]


def _fit_lines(lines: Iterable[str], room: int) -> Iterator[str]:
    for line in lines:
        short = line[:_LONGEST_LINE].strip()
        room -= estimate_text(short) + 1
        if room < 0:
            return
        if short:
            yield short
