"""Summarise a long zone in stages: part by part, then all parts merged.

The request for a part has its context: the first request and the present summary, the names to keep
that occur in the part, and the summaries of the parts before it. A part that fails is requested
once more; if it fails again the stages end and what was paid for is used: the parts before it are
merged, and the messages from it on stay in view. If the merge fails, the texts of the parts are
joined: each has been checked by its own names, and none again by those of other messages.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from conversations.context.steps import summary_checks, summary_prompt
from conversations.context.steps.protocol import SummaryEffect, SummaryReply, SummaryWanted
from conversations.context.steps.summary_checks import SummaryFlaw
from conversations.context.steps.summary_input import fence_text, write_preface
from conversations.context.steps.summary_parts import MARGIN, Part
from conversations.context.steps.summary_zone import Zone
from conversations.context.tokens.estimate import estimate_text
from conversations.context.translation import gettext_noop, mark_recorded

FAILED = mark_recorded(gettext_noop("the call gave no answer"))
_PART = mark_recorded(gettext_noop("part %(number)s of %(most)s: %(why)s"))
#: Percent of the window for the summaries of earlier parts in a part's request.
_BEFORE = 25

PartRequests = Generator[SummaryWanted, SummaryReply | None, "FinishedParts"]


@dataclass(frozen=True, slots=True)
class FinishedParts:
    """The texts of the first parts, the rendered messages they cover, and what ended the stages."""

    texts: tuple[str, ...]
    messages: int
    count: int
    flaw: SummaryFlaw | None = None

    @property
    def said(self) -> str:
        """What is missing, for people; "" if all parts were summarised."""
        if self.flaw is None:
            return ""
        return _PART % {
            "number": len(self.texts) + 1, "most": self.count, "why": self.flaw.reason
        }  # fmt: skip

    def write_merge(self, zone: Zone, keep: Sequence[str], words: int) -> str:
        """Write the request that merges the texts."""
        parts = [fence_text("part", text) for text in self.texts]
        return summary_prompt.write_merge_request(
            "\n\n".join([*write_preface(zone), *parts]), keep, words
        )

    def join(self) -> SummaryReply:
        """Return the texts joined in order, for use when the merge failed."""
        return SummaryReply("\n\n".join(self.texts), "end_turn")


def request_parts(
    zone: Zone,
    parts: Sequence[Part],
    keep: Sequence[str],
    window: int,
    most: int,
    effect: SummaryEffect | None = None,
) -> PartRequests:
    """Request the parts in order, each at most twice; `most` is the token limit of one summary.

    `effect` is that of the whole summary.
    """
    done: list[str] = []
    covered = 0
    # The first part is also asked for names that no part has, such as from inside long results.
    apart = [name for name in keep if not any(name in part.text for part in parts)]
    for number, part in enumerate(parts, start=1):
        named = [name for name in keep if name in part.text] + (apart if number == 1 else [])
        text = summary_prompt.write_part_request(
            write_preface(zone),
            [fence_text("part", one) for one in _fit_newest(done, window * _BEFORE // 100)],
            fence_text("transcript", part.text),
            f"This is part {number} of {len(parts)} of the conversation.",
            named,
            most // 2,
        )
        wanted = SummaryWanted(summary_prompt.SYSTEM, text, most, tuple(named), effect)
        reply = yield wanted
        flaw = _check_reply(reply, named)
        if flaw is not None and flaw.reason != FAILED:
            again = summary_prompt.write_retry(text, flaw.reason, flaw.missing)
            reply = yield SummaryWanted(wanted.system, again, most, wanted.keep)
            flaw = _check_reply(reply, named)
        if reply is None or flaw is not None:
            return FinishedParts(tuple(done), covered, len(parts), flaw)
        done.append(reply.text.strip())
        covered += part.messages
    return FinishedParts(tuple(done), covered, len(parts))


def _check_reply(reply: SummaryReply | None, named: Sequence[str]) -> SummaryFlaw | None:
    if not isinstance(reply, SummaryReply):
        return SummaryFlaw(FAILED)
    return summary_checks.check_summary(reply, named, reply.text)


def _fit_newest(texts: Sequence[str], room: int) -> list[str]:
    """Return the newest texts that fit in `room` tokens, in order."""
    kept: list[str] = []
    for text in reversed(texts):
        room -= estimate_text(text) * MARGIN // 100
        if room < 0:
            break
        kept.append(text)
    return kept[::-1]
