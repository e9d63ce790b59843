"""Replace the middle of the conversation by a text the model writes.

The step requests a text (`SummaryWanted`) and judges what comes back. There is never more than one
summary block: an existing one is summarised again together with the new zone. A rejected summary is
requested once more; after that the view stays as it is, the rejection is recorded, and the
deterministic steps take over.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Literal

from conversations.context.policy.gauge import Gauge
from conversations.context.policy.policy import Policy
from conversations.context.steps import recall_list, summary_checks, summary_prompt
from conversations.context.steps.protocol import SummaryReply, SummaryWanted
from conversations.context.steps.removed_lists import neutralise_headers, write_lists
from conversations.context.steps.summary_checks import SummaryFlaw
from conversations.context.steps.summary_input import (
    fence_text,
    read_own_texts,
    read_results,
    render_messages,
    write_preface,
    write_transcript,
)
from conversations.context.steps.summary_parts import MARGIN, split_messages
from conversations.context.steps.summary_zone import Zone, find_zone
from conversations.context.text import facts_in_text
from conversations.context.tokens.estimate import estimate_text
from conversations.context.view import wire
from conversations.context.view.cost_decision import Decision
from conversations.context.view.edits import (
    Transformation,
    Trigger,
    build_transformation,
    build_unapplied,
)
from conversations.context.view.view import Block, View

START, END = "[CONTEXT SUMMARY]", "[END CONTEXT SUMMARY]"
MEMORY, END_MEMORY = "[WORKING MEMORY]", "[END WORKING MEMORY]"
Kind = Literal["summary", "rounds"]
#: Most names that a summary is required to keep.
_MOST_NAMES = 24
#: A zone smaller than this part (1/8) of what a summary may write is not worth a call.
_LEAST_PART = 8

Summarising = Generator[SummaryWanted, SummaryReply | None, Transformation | None]


def summarise_middle(view: View, gauge: Gauge, policy: Policy) -> Summarising:
    """Request a summary of the zone once the input exceeds its threshold."""
    trigger = gauge.passes_or_room(
        policy.compaction_threshold_tokens, "compaction_threshold_tokens"
    )
    if trigger is None or not policy.compaction_enabled:
        return None
    return (yield from replace_zone(view, find_zone(view, policy), trigger, gauge, policy))


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
    if zone is None or _count_tokens(zone) * _LEAST_PART < policy.summary_max_tokens:
        return None
    draft = _Draft(view, zone, trigger, _find_names(zone), policy, kind, decision)
    text = yield from _write_request(draft, gauge, policy)
    if isinstance(text, SummaryFlaw):
        return draft.build_rejection(text)
    most, keep = policy.summary_max_tokens, tuple(draft.keep)
    wanted = SummaryWanted(summary_prompt.SYSTEM, text, most, keep)
    found = draft.judge((yield wanted))
    if isinstance(found, SummaryFlaw) and found.reason != _FAILED:
        text = summary_prompt.write_retry(text, found.reason, found.missing)
        found = draft.judge((yield replace(wanted, text=text)))
    return draft.build_rejection(found) if isinstance(found, SummaryFlaw) else found


def replace_by_text(
    view: View, zone: Zone, trigger: Trigger, policy: Policy, text: str
) -> Transformation | SummaryFlaw:
    """Replace the zone by this text, or return why the text is rejected."""
    draft = _Draft(view, zone, trigger, _find_names(zone), policy)
    return draft.judge(SummaryReply(text, "end_turn"))


def _write_request(
    draft: _Draft, gauge: Gauge, policy: Policy
) -> Generator[SummaryWanted, SummaryReply | None, str | SummaryFlaw]:
    """Write the request; a zone that does not fit the model is summarised in parts first."""
    window = max(1_000, gauge.room - policy.summary_max_tokens)
    words = policy.summary_max_tokens // 2
    text = write_transcript(draft.zone, policy.summary_input_chars)
    if estimate_text(text) * MARGIN <= window * 100:
        return summary_prompt.write_request(text, draft.keep, words)
    part_texts = split_messages(render_messages(draft.zone.messages), window)
    done: list[str] = []
    for number, part_text in enumerate(part_texts, start=1):
        request = summary_prompt.write_part_request(
            fence_text("part", part_text), number, len(part_texts), words
        )
        reply = yield SummaryWanted(summary_prompt.SYSTEM, request, policy.summary_max_tokens)
        flaw = summary_checks.judge_summary(reply, (), "") if reply else SummaryFlaw(_FAILED)
        if reply is None or flaw:
            return SummaryFlaw(f"part {number} of {len(part_texts)}: {flaw.reason if flaw else ''}")
        done.append(fence_text("part", reply.text.strip()))
    return summary_prompt.write_merge_request(
        "\n\n".join([*write_preface(draft.zone), *done]), draft.keep, words
    )


_FAILED = "the call gave no answer"


@dataclass(frozen=True, slots=True)
class _Draft:
    """What a summary is made of, besides the model's text."""

    view: View
    zone: Zone
    trigger: Trigger
    keep: list[str]
    policy: Policy
    kind: Kind = "summary"
    decision: Decision | None = None

    def build_rejection(self, flaw: SummaryFlaw) -> Transformation:
        reason = f"Summary failed: {flaw.reason}{_list_missing(flaw.missing)}"
        return build_unapplied(self.view, self.kind, self.trigger, "rejected", reason)

    def judge(self, reply: SummaryReply | None) -> Transformation | SummaryFlaw:
        """Return the change that replaces the zone by the reply, or why the reply is rejected."""
        if not isinstance(reply, SummaryReply):
            return SummaryFlaw(_FAILED)
        block = self._block(reply.text)
        flaw = summary_checks.judge_summary(reply, self.keep, block)
        if flaw is not None:
            return flaw
        count = sum(not message.is_empty for message in self.zone.messages)
        new = Block(wire.encode({"type": "text", "text": block}))
        edits = self.zone.edits(self.view, new.text)
        replaced = _count_tokens(self.zone)
        if new.tokens >= replaced or len(new.text.encode()) >= _count_bytes(self.zone):
            return SummaryFlaw("it was not shorter than what it replaces")
        note = (
            f"Summarised {count} messages into about {new.tokens:,} tokens, "
            f"freed about {replaced - new.tokens:,}"
        )
        if self.decision:
            note = f"{note}; {self.decision.explanation}"
        return build_transformation(self.view, self.kind, self.trigger, edits, note, self.decision)

    def _block(self, text: str) -> str:
        zone, limit = self.zone, min(self.policy.recall_list_chars, _count_tokens(self.zone))
        body = neutralise_headers(recall_list.neutralise_markers(text.strip()))
        listed = write_lists(self.view, zone.messages, zone.ours, self.policy, limit)
        start, end = (START, END) if self.kind == "summary" else (MEMORY, END_MEMORY)
        return "\n".join([start, body, *(["", listed] if listed else []), end])


def _count_tokens(zone: Zone) -> int:
    replaced = sum(message.tokens for message in zone.messages)
    return replaced + sum(block.tokens for block in zone.ours)


def _count_bytes(zone: Zone) -> int:
    replaced = sum(message.size for message in zone.messages)
    return replaced + sum(len(block.text.encode()) for block in zone.ours)


def _find_names(zone: Zone) -> list[str]:
    carried = "\n".join([*map(read_results, zone.tail), read_own_texts(zone.first)])
    explanation = [
        zone.previous,
        *map(read_own_texts, zone.messages),
        *map(read_results, zone.messages),
    ]
    return facts_in_text.find_required_names(
        explanation, map(read_own_texts, zone.tail), carried, _MOST_NAMES
    )


def _list_missing(missing: tuple[str, ...]) -> str:
    return f": {', '.join(missing[:5])}" if missing else ""
