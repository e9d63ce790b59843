"""Reductions that a person starts, whatever the thresholds: the same steps, the same edits.

The person's request replaces the threshold and nothing else: pins, verbatim results, the latest
exchange and the first request stay as the steps leave them, what would not shrink is not proposed,
and the thinking behind the edit is dropped. The trigger names the request, and the decision its
cost: the part of the cached prefix that is written again, and the call for a summary.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import Literal

from conversations.context.policy.policy import Policy
from conversations.context.steps.compaction import compactable
from conversations.context.steps.protocol import Situation, SummaryReply, SummaryWanted
from conversations.context.steps.removable_units import kept
from conversations.context.steps.restore import demand_legal
from conversations.context.steps.summary import Summarising, replace_zone, worded
from conversations.context.steps.summary_checks import Flawed
from conversations.context.steps.summary_zone import zone_of
from conversations.context.steps.trim import drop
from conversations.context.steps.working_view import Desk
from conversations.context.tokens.estimate import text_tokens
from conversations.context.view.cost_decision import weigh
from conversations.context.view.edits import Transformation, Trigger, transformation
from conversations.context.view.rules import cuts
from conversations.context.view.view import View

#: The setting of a trigger that is a person's request.
BY_HAND = "by_hand"
Wanted = Literal["results", "turns", "summary"]
#: Percent of the messages' tokens that dropping the oldest turns goes down to, if possible.
_HALF = 50
#: A stand-in for the model's answer while only the requests matter.
_STAND_IN = SummaryReply("x", "end_turn")


def at_hand(view: View, situation: Situation, policy: Policy) -> Desk:
    """Return the working view for a person's change, with the pins."""
    return Desk(view, situation, replace(policy, pins=policy.pins | situation.pins), 0)


def asked(desk: Desk, setting: str = BY_HAND) -> Trigger:
    """Build the trigger of a person's request: the present figure, and no threshold."""
    return Trigger(desk.gauge.tokens, 0, desk.gauge.source, setting)


def results(desk: Desk) -> Transformation | None:
    """Compact every old tool result, down to the latest batch; None when none would shrink."""
    ready = compactable(desk.view, desk.policy)
    edits = [one.edit for one in ready.old if one.edit]
    if not edits:
        return None
    note = f"Compacted {len(edits)} old tool result{'s' if len(edits) > 1 else ''} by hand"
    change = transformation(desk.view, "compaction", asked(desk), edits, note)
    return decided(desk, ready.applied(change))


def turns(desk: Desk) -> Transformation | None:
    """Drop the oldest turns, whole, down to half of the tokens; None when there are none to drop.

    Where half is out of reach all but the last turn are dropped.
    """
    view = desk.view
    positions = cuts(view)
    messages, stay = view.messages, kept(view, positions, desk.policy)
    left, dropped, start = view.tokens, list[int](), 0
    for end in positions[1:-1]:
        if messages[end].kind != "prompt" or left * 100 <= view.tokens * _HALF:
            continue
        gone = [at for at in range(start, end) if at not in stay]
        left -= sum(messages[at].tokens for at in gone)
        dropped += gone
        start = end
    if not dropped:
        return None
    words = desk.policy.recall_list_chars
    change = drop(view, dropped, asked(desk), "asked for by hand", words)
    return decided(desk, change) if is_smaller(change) else None


def summary(desk: Desk) -> Summarising:
    """Request a summary of all but the protected tail; None when that is not worth a call."""
    zone = zone_of(desk.view, desk.policy) if desk.view.length else None
    change = yield from replace_zone(desk.view, zone, asked(desk), desk.gauge, desk.policy)
    return decided(desk, change) if change is not None and change.edits else change


def summary_of(desk: Desk, text: str) -> Transformation | Flawed:
    """Replace all but the protected tail by this text, or return why it is rejected."""
    zone = zone_of(desk.view, desk.policy) if desk.view.length else None
    if zone is None:
        return Flawed("there is nothing to summarise any more")
    change = worded(desk.view, zone, asked(desk), desk.policy, text)
    return change if isinstance(change, Flawed) else decided(desk, change)


def questions(steps: Summarising) -> list[SummaryWanted]:
    """Return what a summary would request of the model at its first attempt, part by part."""
    found: list[SummaryWanted] = []
    reply: SummaryReply | None = None
    while True:
        try:
            wanted = steps.send(reply)
        except StopIteration:
            return found
        if found and wanted.text.startswith(found[-1].text):
            # The second attempt repeats the first one's text.
            return found
        found.append(wanted)
        reply = _STAND_IN


def read_by(questions: list[SummaryWanted]) -> int:
    """Estimate the tokens the model reads for these requests."""
    return sum(text_tokens(one.system) + text_tokens(one.text) for one in questions)


def is_smaller(change: Transformation) -> bool:
    fewer = change.tokens_after < change.tokens_before
    return fewer and change.bytes_after < change.bytes_before


def decided(desk: Desk, change: Transformation) -> Transformation:
    """Add what the change frees and costs; raises RuleError when the result is not legal."""
    demand_legal(change.made)
    permille = desk.gauge.permille
    saved = max(0, change.tokens_before - change.tokens_after) * permille // 1000
    again = 0 if desk.situation.is_cold else rewritten(desk, change.made) * permille // 1000
    found = weigh("asked", saved, again, (0, 0), desk.situation.rates, 0)
    return replace(change, decision=found)


def rewritten(desk: Desk, after: View) -> int:
    """Estimate the tokens behind the first difference, which the prompt cache must write again."""
    pairs = zip(desk.view.messages, after.messages, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0].content == pair[1].content, pairs))
    return sum(message.tokens for message in after.messages[same:])
