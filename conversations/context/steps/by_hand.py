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
from conversations.context.steps.compaction import OLD_RESULTS, find_compactable
from conversations.context.steps.protocol import Situation, SummaryReply, SummaryWanted
from conversations.context.steps.removable_units import find_kept
from conversations.context.steps.restore import demand_legal
from conversations.context.steps.summary import Summarising, replace_by_text, replace_zone
from conversations.context.steps.summary_checks import SummaryFlaw
from conversations.context.steps.summary_zone import find_zone
from conversations.context.steps.trim import drop_messages
from conversations.context.steps.working_view import WorkingView, add_choices
from conversations.context.tokens.estimate import estimate_text
from conversations.context.translation import gettext_noop, mark_recorded, write_count
from conversations.context.view.cost_decision import weigh_reduction
from conversations.context.view.edits import Transformation, Trigger, build_transformation
from conversations.context.view.prefix import count_unedited
from conversations.context.view.rules import find_cuts
from conversations.context.view.view import View

#: The trigger's setting for a person's request.
BY_HAND = "by_hand"
Wanted = Literal["results", "turns", "summary"]
_COMPACTED = mark_recorded(gettext_noop("Compacted %(what)s by hand"))
_ASKED = mark_recorded(gettext_noop("asked for by hand"))
_NOTHING = mark_recorded(gettext_noop("there is nothing to summarise any more"))
#: Percent of the messages' tokens to reach, if possible, by dropping the oldest turns.
_HALF = 50


def build_working_view(view: View, situation: Situation, policy: Policy) -> WorkingView:
    """Return the working view for a person's change, with the pins."""
    return WorkingView(view, situation, add_choices(policy, situation), 0)


def build_trigger(working: WorkingView, setting: str = BY_HAND) -> Trigger:
    """Build the trigger of a person's request: the present figure, and no threshold."""
    return Trigger(working.gauge.tokens, 0, working.gauge.source, setting)


def compact_by_hand(working: WorkingView) -> Transformation | None:
    """Compact every tool result before the latest batch; None if none would shrink."""
    ready = find_compactable(working.view, working.policy)
    edits = [one.rewritten.edit for one in ready.old if one.rewritten]
    if not edits:
        return None
    note = _COMPACTED % {"what": write_count(*OLD_RESULTS, len(edits))}
    change = build_transformation(working.view, "compaction", build_trigger(working), edits, note)
    return add_decision(working, ready.record_applied(change))


def drop_turns_by_hand(working: WorkingView) -> Transformation | None:
    """Drop the oldest whole turns, down to half of the tokens; None if there are none to drop.

    If half is out of reach, all but the last turn are dropped.
    """
    view = working.view
    positions = find_cuts(view)
    messages, stay = view.messages, find_kept(view, positions, working.policy)
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
    policy, trigger = working.policy, build_trigger(working)
    change = drop_messages(view, policy, dropped, trigger, _ASKED, policy.lists_chars)
    return add_decision(working, change) if is_smaller(change) else None


def summarise_by_hand(working: WorkingView) -> Summarising:
    """Request a summary of all but the protected tail; None if that is not worth a call.

    Of all or nothing: what is applied later is the text alone (`replace_by_hand`).
    """
    zone = find_zone(working.view, working.policy) if working.view.length else None
    trigger, policy = build_trigger(working), working.policy
    change = yield from replace_zone(
        working.view, zone, trigger, working.gauge, policy, is_whole=True
    )
    return add_decision(working, change) if change is not None and change.edits else change


def replace_by_hand(working: WorkingView, text: str) -> Transformation | SummaryFlaw:
    """Replace all but the protected tail by this text, or return why it is rejected."""
    zone = find_zone(working.view, working.policy) if working.view.length else None
    if zone is None:
        return SummaryFlaw(_NOTHING)
    change = replace_by_text(working.view, zone, build_trigger(working), working.policy, text)
    return change if isinstance(change, SummaryFlaw) else add_decision(working, change)


def list_summary_requests(steps: Summarising) -> list[SummaryWanted]:
    """Return the requests of a summary's first attempt, part by part."""
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
        # Only the requests matter here, so any text will do that is not rejected.
        reply = SummaryReply("\n".join(("x", *wanted.keep)), "end_turn")


def estimate_input(questions: list[SummaryWanted]) -> int:
    """Estimate the tokens the model reads for these requests."""
    return sum(estimate_text(one.system) + estimate_text(one.text) for one in questions)


def is_smaller(change: Transformation) -> bool:
    fewer = change.tokens_after < change.tokens_before
    return fewer and change.bytes_after < change.bytes_before


def add_decision(working: WorkingView, change: Transformation) -> Transformation:
    """Add what the change frees and costs; raises RuleError if the result is not legal."""
    demand_legal(working.view, change.view_after)
    permille = working.gauge.permille
    saved = max(0, change.tokens_before - change.tokens_after) * permille // 1000
    is_cold = working.situation.is_cold
    rewritten = 0 if is_cold else count_rewritten(working, change.view_after)
    again = rewritten * permille // 1000
    found = weigh_reduction("asked", saved, again, 0, working.situation.rates, 0)
    return replace(change, decision=found)


def count_rewritten(working: WorkingView, after: View) -> int:
    """Estimate the tokens after the first difference, which the prompt cache must write again.

    What is behind an earlier change since the last request must be written in any case.
    """
    pairs = zip(working.view.messages, after.messages, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0].content == pair[1].content, pairs))
    end = count_unedited(after.messages, working.situation.edited_from)
    return sum(message.tokens for message in after.messages[same:end])
