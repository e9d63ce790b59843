"""Replace the middle of the conversation by a text the model writes.

The step requests a text (`SummaryWanted`) and checks the reply. There is never more than one
summary block: an existing one is summarised again together with the new zone. A rejected summary is
requested once more; after that the view stays as it is, the rejection is recorded, and the
deterministic steps run instead.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Literal

from conversations.context.policy.gauge import Gauge
from conversations.context.policy.policy import Policy
from conversations.context.steps import recall_list, summary_checks, summary_prompt
from conversations.context.steps.protocol import SummaryEffect, SummaryReply, SummaryWanted
from conversations.context.steps.removed_lists import neutralise_headers, write_lists
from conversations.context.steps.summary_call import WRITTEN
from conversations.context.steps.summary_checks import SummaryFlaw
from conversations.context.steps.summary_input import (
    read_own_texts,
    read_results,
    render_messages,
    write_transcript,
)
from conversations.context.steps.summary_parts import MARGIN, Part, split_messages
from conversations.context.steps.summary_stages import FAILED, FinishedParts, request_parts
from conversations.context.steps.summary_zone import Zone, find_zone, find_zone_before
from conversations.context.text import facts_in_text
from conversations.context.tokens.estimate import estimate_text
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view import wire
from conversations.context.view.cost_decision import Decision
from conversations.context.view.edits import (
    Transformation,
    Trigger,
    build_transformation,
    build_unapplied,
)
from conversations.context.view.rules import find_cuts
from conversations.context.view.view import Block, View

_NOTE = mark_recorded(
    gettext_noop("Summarised %(count)s messages into about %(number)s tokens, freed about %(most)s")
)

START, END = "[CONTEXT SUMMARY]", "[END CONTEXT SUMMARY]"
MEMORY, END_MEMORY = "[WORKING MEMORY]", "[END WORKING MEMORY]"
Kind = Literal["summary", "rounds"]
_NO_FIT = mark_recorded(gettext_noop("the parts do not fit one request"))
_NOT_SHORTER = mark_recorded(gettext_noop("it was not shorter than what it replaces"))
_FAILED = mark_recorded(gettext_noop("Summary failed: %(why)s"))
#: Most names that a summary is required to keep.
_MOST_NAMES = 24
#: A zone smaller than 1/8 of the longest summary is not worth a call.
_LEAST_PART = 8

Summarising = Generator[SummaryWanted, SummaryReply | None, Transformation | None]
Requesting = Generator[SummaryWanted, SummaryReply | None, Transformation | SummaryFlaw]


def summarise_middle(view: View, gauge: Gauge, policy: Policy) -> Summarising:
    """Request a summary of the zone once the input exceeds its threshold.

    What the room demands is decided before, where the policy reduces in one go.
    """
    passes = gauge.passes if policy.compact_above_percent else gauge.passes_or_room
    trigger = passes(policy.compaction_threshold_tokens, "compaction_threshold_tokens")
    if trigger is None or not policy.compaction_enabled:
        return None
    zone = find_zone(view, policy)
    if zone is None or _count_tokens(zone) < policy.summary_least_tokens:
        return None
    return (yield from replace_zone(view, zone, trigger, gauge, policy))


def replace_zone(
    view: View,
    zone: Zone | None,
    trigger: Trigger,
    gauge: Gauge,
    policy: Policy,
    *,
    kind: Kind = "summary",
    decision: Decision | None = None,
    is_whole: bool = False,
) -> Summarising:
    """Request a summary of this zone, whatever the thresholds.

    With `is_whole` a failed part is a rejection, whatever the parts before it say.
    """
    if zone is None or _count_tokens(zone) * _LEAST_PART < policy.summary_max_tokens:
        return None
    draft = _Draft(view, zone, trigger, _find_names(zone), policy, kind, decision, is_whole)
    rendered, window = render_messages(zone.messages), _find_window(gauge, policy)
    # Without `summary_staged` one request reads the zone cut to `summary_input_chars`, if the
    # window has room for that.
    limit = sys.maxsize if policy.summary_staged else policy.summary_input_chars
    text = write_transcript(zone, "\n\n".join(one.text for one in rendered), limit)
    if policy.summary_staged or not _fits(text, window):
        parts = split_messages(rendered, window)
        if len(parts) > 1:
            return (yield from _replace_in_stages(draft, parts, window))
        if not _fits(text, window):
            text = write_transcript(zone, parts[0].text, limit)
    return (yield from _request_text(draft, draft.write_request(text)))


def _fits(text: str, window: int) -> bool:
    return estimate_text(text) * MARGIN <= window * 100


def _find_window(gauge: Gauge, policy: Policy) -> int:
    """Return the tokens that a summary call may read."""
    return max(1_000, gauge.room - policy.summary_max_tokens)


def _request_text(draft: _Draft, text: str) -> Summarising:
    """Request the summary, and once more if it is rejected."""
    found = yield from _request_twice(draft, text, draft.behind)
    return draft.build_rejection(found) if isinstance(found, SummaryFlaw) else found


def _request_twice(draft: _Draft, text: str, behind: int | None = None) -> Requesting:
    """Request the summary, the second time on a prompt of its own in any case."""
    most, keep = draft.policy.summary_max_tokens, tuple(draft.keep)
    effect = draft.estimate_effect(estimate_text(text))
    wanted = SummaryWanted(summary_prompt.SYSTEM, text, most, keep, effect, behind)
    found = draft.check_reply((yield wanted))
    if isinstance(found, SummaryFlaw) and found.reason != FAILED:
        text = summary_prompt.write_retry(text, found.reason, found.missing)
        found = draft.check_reply((yield replace(wanted, text=text, behind=None)))
    return found


def _replace_in_stages(draft: _Draft, parts: list[Part], window: int) -> Summarising:
    """Summarise the parts, merge them, and replace what they cover."""
    most = draft.policy.summary_max_tokens
    effect = draft.estimate_effect(sum(estimate_text(part.text) for part in parts))
    done = yield from request_parts(draft.zone, parts, draft.keep, window, most, effect)
    part = draft.cover(done)
    if part is None:
        return draft.build_rejection(SummaryFlaw(done.said))
    # Each text has already been checked by the names that its part was asked to keep.
    joined = replace(part, keep=[]).check_reply(done.join())
    found: Transformation | SummaryFlaw = SummaryFlaw(_NO_FIT)
    text = done.write_merge(part.zone, part.keep, most // 2)
    if len(done.texts) == 1:
        found = joined
    elif _fits(text, window):
        found = yield from _request_twice(part, text)
    if isinstance(found, SummaryFlaw) and not isinstance(joined, SummaryFlaw):
        found = joined
    if isinstance(found, SummaryFlaw):
        return part.build_rejection(found)
    return replace(found, note=f"{found.note}; {done.said}") if done.said else found


def replace_by_text(
    view: View, zone: Zone, trigger: Trigger, policy: Policy, text: str
) -> Transformation | SummaryFlaw:
    """Replace the zone by this text, or return why the text is rejected."""
    draft = _Draft(view, zone, trigger, _find_names(zone), policy)
    return draft.check_reply(SummaryReply(text, "end_turn"))


@dataclass(frozen=True, slots=True)
class _Draft:
    """The data of a summary besides the model's text."""

    view: View
    zone: Zone
    trigger: Trigger
    keep: list[str]
    policy: Policy
    kind: Kind = "summary"
    decision: Decision | None = None
    is_whole: bool = False

    @property
    def behind(self) -> int | None:
        """The messages behind the zone; None where the policy prescribes the summary's prompt.

        A design with a threshold for summaries has that prompt too, so its preset keeps it.
        """
        if self.decision is None or self.kind != "summary":
            return None
        return self.view.length - self.zone.indexes[-1] - 1

    def write_request(self, text: str) -> str:
        return summary_prompt.write_request(text, self.keep, self.policy.summary_max_tokens // 2)

    def estimate_effect(self, read: int) -> SummaryEffect | None:
        """Return the numbers to weigh a summary by; None if its decision is made already."""
        if self.decision is not None:
            return None
        end = self.zone.indexes[-1] + 1
        behind = sum(message.tokens for message in self.view.messages[end:])
        freed = max(0, _count_tokens(self.zone) - WRITTEN)
        return SummaryEffect(freed, behind + WRITTEN, read)

    def cover(self, done: FinishedParts) -> _Draft | None:
        """Return the draft for the messages that the finished parts cover; None if too few.

        The other messages stay in view, starting at the last cut before them.
        """
        if done.flaw is None:
            return self
        if not done.texts or self.kind != "summary" or self.is_whole:
            return None
        said = [at for at in self.zone.indexes if not self.view.messages[at].is_empty]
        last = said[done.messages - 1] + 1
        end = max((at for at in find_cuts(self.view) if at <= last), default=0)
        zone = find_zone_before(self.view, self.policy, end, self.zone.indexes[0])
        return replace(self, zone=zone, keep=_find_names(zone)) if zone else None

    def build_rejection(self, flaw: SummaryFlaw) -> Transformation:
        reason = _FAILED % {"why": f"{flaw.reason}{_list_missing(flaw.missing)}"}
        return build_unapplied(self.view, self.kind, self.trigger, "rejected", reason)

    def check_reply(self, reply: SummaryReply | None) -> Transformation | SummaryFlaw:
        """Return the change that replaces the zone by the reply, or why the reply is rejected."""
        if not isinstance(reply, SummaryReply):
            return SummaryFlaw(FAILED)
        block = self._block(reply.text)
        flaw = summary_checks.check_summary(reply, self.keep, block)
        if flaw is not None:
            return flaw
        count = sum(not message.is_empty for message in self.zone.messages)
        new = Block(wire.encode({"type": "text", "text": block}))
        edits = self.zone.edits(self.view, new.text)
        replaced = _count_tokens(self.zone)
        if new.tokens >= replaced or len(new.text.encode()) >= _count_bytes(self.zone):
            return SummaryFlaw(_NOT_SHORTER)
        note = _NOTE % {
            "count": f"{count:,}", "number": f"{new.tokens:,}",
            "most": f"{replaced - new.tokens:,}",
        }  # fmt: skip
        if self.decision:
            note = f"{note}; {self.decision.explanation}"
        return build_transformation(self.view, self.kind, self.trigger, edits, note, self.decision)

    def _block(self, text: str) -> str:
        zone, limit = self.zone, min(self.policy.lists_chars, _count_tokens(self.zone))
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
