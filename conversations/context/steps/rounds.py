"""Within one turn, replace finished tool rounds by one working memory.

A long turn is one exchange: no exchange in it is old, but its first rounds are. After every
`round_summary_every` rounds all but the last are replaced by one block behind the prompt that
started them; the next time that block is summarised again with the new rounds, so there is never
more than one. The next attempt follows only after as many rounds more, so a failed call costs one
attempt.
"""

from __future__ import annotations

from conversations.context.policy.gauge import Gauge
from conversations.context.policy.policy import Policy
from conversations.context.steps.removable_units import find_kept
from conversations.context.steps.summary import Summarising, replace_zone
from conversations.context.steps.summary_zone import Zone
from conversations.context.view.edits import Trigger
from conversations.context.view.rules import find_cuts
from conversations.context.view.view import View


def summarise_rounds(view: View, gauge: Gauge, policy: Policy) -> Summarising:
    """Request a working memory after each `round_summary_every` rounds of the turn."""
    every = policy.round_summary_every
    if not every or not policy.compaction_enabled:
        return None
    messages = view.trail.messages
    prompt = view.length - 1
    count = 0
    while prompt > 0 and messages[prompt].kind != "prompt":
        count += messages[prompt].kind == "results"
        prompt -= 1
    if count < every or count % every:
        return None
    trigger = Trigger(count, every - 1, "counted", "round_summary_every")
    zone = _find_zone(view, policy, prompt)
    return (yield from replace_zone(view, zone, trigger, gauge, policy, kind="rounds"))


def _find_zone(view: View, policy: Policy, prompt: int) -> Zone | None:
    messages = view.messages
    stay = find_kept(view, find_cuts(view), policy)
    indexes = tuple(at for at in range(prompt + 1, view.length) if at not in stay)
    if len(indexes) < 2:
        return None
    first = messages[prompt]
    by = first.by or ("",) * len(first.blocks)
    at = by.index("rounds") if "rounds" in by else len(by)
    tail = tuple(messages[at] for at in range(prompt + 1, view.length) if at in stay)
    replaced = tuple(messages[at] for at in indexes)
    return Zone(replaced, indexes, tail, first, at, first.blocks[at : at + 1])
