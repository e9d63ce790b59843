"""What a person may have reduced now, whatever the thresholds: the same steps, the same edits.

The wish replaces the threshold and nothing else: pins, verbatim results, the latest exchange and
the first request stay as the steps leave them, what would not shrink is not proposed, and the
thinking behind the edit goes. The trigger names the wish, and the decision what it costs: the part
of the cached prefix that is written anew, and what a call for a summary takes.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import Literal

from conversations.context.policy.policy import Policy
from conversations.context.steps.compaction import find_compactable
from conversations.context.steps.protocol import Situation, SummaryReply, SummaryWanted
from conversations.context.steps.removable_units import find_kept
from conversations.context.steps.restore import demand_legal
from conversations.context.steps.summary import Summarising, replace_by_text, replace_zone
from conversations.context.steps.summary_checks import SummaryFlaw
from conversations.context.steps.summary_zone import find_zone
from conversations.context.steps.trim import drop_messages
from conversations.context.steps.working_view import WorkingView
from conversations.context.tokens.estimate import estimate_text
from conversations.context.view.cost_decision import weigh_reduction
from conversations.context.view.edits import Transformation, Trigger, build_transformation
from conversations.context.view.rules import find_cuts
from conversations.context.view.view import View

#: What stands as the setting of a trigger that is a person's wish.
BY_HAND = "by_hand"
Wanted = Literal["results", "turns", "summary"]
#: Percent of the messages' tokens that dropping the oldest turns goes down to, where it can.
_HALF = 50
#: Stands for an answer while only the questions matter.
_STAND_IN = SummaryReply("x", "end_turn")


def build_working_view(view: View, situation: Situation, policy: Policy) -> WorkingView:
    """Lay a view on the desk, with what is pinned, for a person to work on."""
    return WorkingView(view, situation, replace(policy, pins=policy.pins | situation.pins), 0)


def build_trigger(desk: WorkingView, setting: str = BY_HAND) -> Trigger:
    """Give the trigger of a wish: the figure as it stands, and no threshold."""
    return Trigger(desk.gauge.tokens, 0, desk.gauge.source, setting)


def compact_by_hand(desk: WorkingView) -> Transformation | None:
    """Compact every old tool result, down to the latest batch; None when none would shrink."""
    ready = find_compactable(desk.view, desk.policy)
    edits = [one.edit for one in ready.old if one.edit]
    if not edits:
        return None
    note = f"Compacted {len(edits)} old tool result{'s' if len(edits) > 1 else ''} by hand"
    change = build_transformation(desk.view, "compaction", build_trigger(desk), edits, note)
    return add_decision(desk, ready.applied(change))


def drop_turns_by_hand(desk: WorkingView) -> Transformation | None:
    """Drop the oldest turns, whole, down to half of the tokens; None when there are none to drop.

    Where half is out of reach all but the last turn go.
    """
    view = desk.view
    positions = find_cuts(view)
    messages, stay = view.messages, find_kept(view, positions, desk.policy)
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
    change = drop_messages(view, dropped, build_trigger(desk), "asked for by hand", words)
    return add_decision(desk, change) if is_smaller(change) else None


def summarise_by_hand(desk: WorkingView) -> Summarising:
    """Ask for a summary of all but the protected tail; None when that is not worth a call."""
    zone = find_zone(desk.view, desk.policy) if desk.view.length else None
    change = yield from replace_zone(desk.view, zone, build_trigger(desk), desk.gauge, desk.policy)
    return add_decision(desk, change) if change is not None and change.edits else change


def replace_by_hand(desk: WorkingView, text: str) -> Transformation | SummaryFlaw:
    """Put these words in the place of all but the protected tail, or say what is wrong."""
    zone = find_zone(desk.view, desk.policy) if desk.view.length else None
    if zone is None:
        return SummaryFlaw("there is nothing to summarise any more")
    change = replace_by_text(desk.view, zone, build_trigger(desk), desk.policy, text)
    return change if isinstance(change, SummaryFlaw) else add_decision(desk, change)


def list_summary_requests(steps: Summarising) -> list[SummaryWanted]:
    """Give what a summary would ask of the model at its first attempt, part by part."""
    found: list[SummaryWanted] = []
    reply: SummaryReply | None = None
    while True:
        try:
            wanted = steps.send(reply)
        except StopIteration:
            return found
        if found and wanted.text.startswith(found[-1].text):
            # The second attempt says the first one again.
            return found
        found.append(wanted)
        reply = _STAND_IN


def estimate_input(questions: list[SummaryWanted]) -> int:
    """Estimate what the model reads for these questions, in tokens."""
    return sum(estimate_text(one.system) + estimate_text(one.text) for one in questions)


def is_smaller(change: Transformation) -> bool:
    fewer = change.tokens_after < change.tokens_before
    return fewer and change.bytes_after < change.bytes_before


def add_decision(desk: WorkingView, change: Transformation) -> Transformation:
    """Say what the change frees and what it costs; raises RuleError when it is not legal."""
    demand_legal(change.made)
    permille = desk.gauge.permille
    saved = max(0, change.tokens_before - change.tokens_after) * permille // 1000
    again = 0 if desk.situation.is_cold else count_rewritten(desk, change.made) * permille // 1000
    found = weigh_reduction("asked", saved, again, (0, 0), desk.situation.rates, 0)
    return replace(change, decision=found)


def count_rewritten(desk: WorkingView, after: View) -> int:
    """Estimate the tokens behind the first difference: what the prompt cache has to write anew."""
    pairs = zip(desk.view.messages, after.messages, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0].content == pair[1].content, pairs))
    return sum(message.tokens for message in after.messages[same:])
