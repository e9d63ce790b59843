"""Replace the middle of the conversation by a text the model writes.

The step asks (`SummaryWanted`) and judges what comes back. There is never more than one summary
block: an existing one is distilled again together with the new zone. A summary that is not accepted
is asked for once more; after that the view stays as it is, the rejection is recorded, and the
deterministic steps take over.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from conversations.context import acceptance, names, prompts, recallable, wire
from conversations.context.acceptance import Flawed
from conversations.context.edits import Transformation, Trigger, transformation, unapplied
from conversations.context.gauge import Gauge
from conversations.context.policy import Policy
from conversations.context.situation import SummaryReply, SummaryWanted
from conversations.context.transcript import results, spoken, transcript
from conversations.context.view import Block, View
from conversations.context.zone import Zone, zone_of

START, END = "[CONTEXT SUMMARY]", "[END CONTEXT SUMMARY]"
#: Names a summary must keep at most.
_MOST_NAMES = 24
#: A zone smaller than this part of what a summary may write is not worth a call.
_LEAST_PART = 8

Summarising = Generator[SummaryWanted, SummaryReply | None, Transformation | None]


def summarise(view: View, gauge: Gauge, policy: Policy) -> Summarising:
    """Ask for a summary of the zone once the input outgrows its threshold."""
    trigger = gauge.passes_or_room(
        policy.compaction_threshold_tokens, "compaction_threshold_tokens"
    )
    if trigger is None or not policy.compaction_enabled:
        return None
    zone = zone_of(view, policy)
    if zone is None or _tokens(zone) * _LEAST_PART < policy.summary_max_tokens:
        return None
    draft = _Draft(view, zone, trigger, _names(zone))
    text = _request(draft, gauge, policy)
    wanted = SummaryWanted(prompts.SYSTEM, text, policy.summary_max_tokens)
    found = draft.judged((yield wanted))
    if isinstance(found, Flawed) and found.reason != _FAILED:
        text = prompts.again(text, found.reason, found.missing)
        found = draft.judged((yield SummaryWanted(wanted.system, text, wanted.max_tokens)))
    if isinstance(found, Flawed):
        reason = f"Summary failed: {found.reason}{_listed(found.missing)}"
        return unapplied(view, "summary", trigger, "rejected", reason)
    return found


_FAILED = "the call gave no answer"


@dataclass(frozen=True, slots=True)
class _Draft:
    """What a summary is made of, besides the model's words."""

    view: View
    zone: Zone
    trigger: Trigger
    keep: list[str]

    def judged(self, reply: SummaryReply | None) -> Transformation | Flawed:
        """Give the change that puts the reply in place of the zone, or what is wrong with it."""
        if not isinstance(reply, SummaryReply):
            return Flawed(_FAILED)
        block = self._block(reply.text)
        flaw = acceptance.judge(reply, self.keep, block)
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
        return transformation(self.view, "summary", self.trigger, edits, note)

    def _block(self, text: str) -> str:
        found, older = recallable.carried(self.zone.ours)
        found += recallable.lines(self.view, self.zone.messages)
        body = recallable.neutral(text.strip()).replace(recallable.HEADER, "")
        listed = recallable.listed(found, older, min(recallable.LIMIT, _tokens(self.zone)))
        return "\n".join([START, body, *(["", listed] if listed else []), END])


def _tokens(zone: Zone) -> int:
    replaced = sum(message.tokens for message in zone.messages)
    return replaced + sum(block.tokens for block in zone.ours)


def _size(zone: Zone) -> int:
    replaced = sum(message.size for message in zone.messages)
    return replaced + sum(len(block.text.encode()) for block in zone.ours)


def _names(zone: Zone) -> list[str]:
    carried = "\n".join([*map(results, zone.tail), spoken(zone.first)])
    said = [zone.previous, *map(spoken, zone.messages), *map(results, zone.messages)]
    return names.required(said, map(spoken, zone.tail), carried, _MOST_NAMES)


def _request(draft: _Draft, gauge: Gauge, policy: Policy) -> str:
    """Write the request so that it fits a small window too: about two characters a token."""
    room = 2 * max(1_000, gauge.room - policy.summary_max_tokens)
    text = transcript(draft.zone, min(policy.summary_input_chars, room))
    return prompts.request(text, draft.keep, policy.summary_max_tokens // 2)


def _listed(missing: tuple[str, ...]) -> str:
    return f": {', '.join(missing[:5])}" if missing else ""
