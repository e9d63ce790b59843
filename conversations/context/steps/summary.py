"""Replace the middle of the conversation by a text the model writes.

The step requests a text (`SummaryWanted`) and judges what comes back. There is never more than one
summary block: an existing one is summarised again together with the new zone. A rejected summary is
requested once more; after that the view stays as it is, the rejection is recorded, and the
deterministic steps take over.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Literal

from conversations.context.policy.gauge import Gauge
from conversations.context.policy.policy import Policy
from conversations.context.steps import recall_list, summary_checks, summary_prompt
from conversations.context.steps.protocol import SummaryReply, SummaryWanted
from conversations.context.steps.summary_checks import Flawed
from conversations.context.steps.summary_input import (
    before,
    fenced,
    results,
    spoken,
    told,
    transcript,
)
from conversations.context.steps.summary_parts import MARGIN, parts
from conversations.context.steps.summary_zone import Zone, zone_of
from conversations.context.text import facts_in_text
from conversations.context.tokens.estimate import text_tokens
from conversations.context.view import wire
from conversations.context.view.cost_decision import Decision
from conversations.context.view.edits import Transformation, Trigger, transformation, unapplied
from conversations.context.view.view import Block, View

START, END = "[CONTEXT SUMMARY]", "[END CONTEXT SUMMARY]"
MEMORY, END_MEMORY = "[WORKING MEMORY]", "[END WORKING MEMORY]"
Kind = Literal["summary", "rounds"]
#: Most names that a summary is required to keep.
_MOST_NAMES = 24
#: A zone smaller than this part (1/8) of what a summary may write is not worth a call.
_LEAST_PART = 8

Summarising = Generator[SummaryWanted, SummaryReply | None, Transformation | None]


def summarise(view: View, gauge: Gauge, policy: Policy) -> Summarising:
    """Request a summary of the zone once the input exceeds its threshold."""
    trigger = gauge.passes_or_room(
        policy.compaction_threshold_tokens, "compaction_threshold_tokens"
    )
    if trigger is None or not policy.compaction_enabled:
        return None
    return (yield from replace_zone(view, zone_of(view, policy), trigger, gauge, policy))


def replace_zone(
    view: View,
    zone: Zone | None,
    trigger: Trigger,
    gauge: Gauge,
    policy: Policy,
    *,
    kind: Kind = "summary",
    decision: Decision | None = None,
) -> Summarising:
    """Request a summary of this zone, whatever the thresholds."""
    if zone is None or _tokens(zone) * _LEAST_PART < policy.summary_max_tokens:
        return None
    draft = _Draft(view, zone, trigger, _names(zone), policy.recall_list_chars, kind, decision)
    text = yield from _asked(draft, gauge, policy)
    if isinstance(text, Flawed):
        return draft.rejected(text)
    wanted = SummaryWanted(summary_prompt.SYSTEM, text, policy.summary_max_tokens)
    found = draft.judged((yield wanted))
    if isinstance(found, Flawed) and found.reason != _FAILED:
        text = summary_prompt.again(text, found.reason, found.missing)
        found = draft.judged((yield SummaryWanted(wanted.system, text, wanted.max_tokens)))
    return draft.rejected(found) if isinstance(found, Flawed) else found


def worded(
    view: View, zone: Zone, trigger: Trigger, policy: Policy, text: str
) -> Transformation | Flawed:
    """Replace the zone by this text, or return why the text is rejected."""
    draft = _Draft(view, zone, trigger, _names(zone), policy.recall_list_chars)
    return draft.judged(SummaryReply(text, "end_turn"))


def _asked(
    draft: _Draft, gauge: Gauge, policy: Policy
) -> Generator[SummaryWanted, SummaryReply | None, str | Flawed]:
    """Write the request; a zone that does not fit the model is summarised in parts first."""
    window = max(1_000, gauge.room - policy.summary_max_tokens)
    words = policy.summary_max_tokens // 2
    text = transcript(draft.zone, policy.summary_input_chars)
    if text_tokens(text) * MARGIN <= window * 100:
        return summary_prompt.request(text, draft.keep, words)
    told_parts = parts(told(draft.zone.messages), window)
    done: list[str] = []
    for number, told_part in enumerate(told_parts, start=1):
        asked = summary_prompt.part(fenced("part", told_part), number, len(told_parts), words)
        reply = yield SummaryWanted(summary_prompt.SYSTEM, asked, policy.summary_max_tokens)
        flaw = summary_checks.judge(reply, (), "") if reply else Flawed(_FAILED)
        if reply is None or flaw:
            return Flawed(f"part {number} of {len(told_parts)}: {flaw.reason if flaw else ''}")
        done.append(fenced("part", reply.text.strip()))
    return summary_prompt.merge("\n\n".join([*before(draft.zone), *done]), draft.keep, words)


_FAILED = "the call gave no answer"


@dataclass(frozen=True, slots=True)
class _Draft:
    """What a summary is made of, besides the model's text."""

    view: View
    zone: Zone
    trigger: Trigger
    keep: list[str]
    list_chars: int
    kind: Kind = "summary"
    decision: Decision | None = None

    def rejected(self, flaw: Flawed) -> Transformation:
        reason = f"Summary failed: {flaw.reason}{_listed(flaw.missing)}"
        return unapplied(self.view, self.kind, self.trigger, "rejected", reason)

    def judged(self, reply: SummaryReply | None) -> Transformation | Flawed:
        """Return the change that replaces the zone by the reply, or why the reply is rejected."""
        if not isinstance(reply, SummaryReply):
            return Flawed(_FAILED)
        block = self._block(reply.text)
        flaw = summary_checks.judge(reply, self.keep, block)
        if flaw is not None:
            return flaw
        count = sum(not message.is_empty for message in self.zone.messages)
        new = Block(wire.encode({"type": "text", "text": block}))
        edits = self.zone.edits(self.view, new.text)
        replaced = _tokens(self.zone)
        if new.tokens >= replaced or len(new.text.encode()) >= _size(self.zone):
            return Flawed("it was not shorter than what it replaces")
        note = (
            f"Summarised {count} messages into about {new.tokens:,} tokens, "
            f"freed about {replaced - new.tokens:,}"
        )
        if self.decision:
            note = f"{note}; {self.decision.said}"
        return transformation(self.view, self.kind, self.trigger, edits, note, self.decision)

    def _block(self, text: str) -> str:
        found, older = recall_list.carried(self.zone.ours)
        found += recall_list.lines(self.view, self.zone.messages)
        body = recall_list.neutral(text.strip()).replace(recall_list.HEADER, "")
        listed = recall_list.listed(found, older, min(self.list_chars, _tokens(self.zone)))
        start, end = (START, END) if self.kind == "summary" else (MEMORY, END_MEMORY)
        return "\n".join([start, body, *(["", listed] if listed else []), end])


def _tokens(zone: Zone) -> int:
    replaced = sum(message.tokens for message in zone.messages)
    return replaced + sum(block.tokens for block in zone.ours)


def _size(zone: Zone) -> int:
    replaced = sum(message.size for message in zone.messages)
    return replaced + sum(len(block.text.encode()) for block in zone.ours)


def _names(zone: Zone) -> list[str]:
    carried = "\n".join([*map(results, zone.tail), spoken(zone.first)])
    said = [zone.previous, *map(spoken, zone.messages), *map(results, zone.messages)]
    return facts_in_text.required(said, map(spoken, zone.tail), carried, _MOST_NAMES)


def _listed(missing: tuple[str, ...]) -> str:
    return f": {', '.join(missing[:5])}" if missing else ""
