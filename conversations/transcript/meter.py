"""How full the context is and what the conversation has cost, as the page shows it.

Only entries on the shown path fill the context.
"""

from __future__ import annotations

from conversations.context.errors import ContextError
from conversations.log.context_size import ContextFigures, estimate_tokens, read_figures
from conversations.models import Conversation
from conversations.reductions.in_full import apply_in_full_ahead
from conversations.reductions.policy import (
    effective_numbers,
    read_api_edits,
    read_known_numbers,
)
from conversations.reductions.policy_outline import build_outline
from conversations.rendering.numbers import write_number
from conversations.transcript.next_message import forecast_next
from conversations.transcript.shapes import Meter, Tick


def read_meter(conversation: Conversation, *, has_next: bool = False) -> Meter:
    """Return how full the context is and what the conversation has cost.

    Two queries at most, and one each for a choice to send in full and for a policy that leaves
    work to the API. `has_next`: include the cost of the next message.

    The token count is that of the last reply, plus what was appended and minus what was reduced
    since. It is estimated where no call has reported one (imported, or during the first answer),
    and after a change of model, whose tokenizer may be another.
    """
    found = read_figures(conversation)
    window = found.window or 200_000
    cached = None
    if found.reported is None:
        tokens = estimate_tokens(conversation)
        source = "estimated" if tokens else "none"
    else:
        tokens = max(0, found.reported + found.moved)
        is_exact = found.has_report and not found.moved and not found.is_sum
        source = "reported" if is_exact else "estimated"
        cached = found.cached * 100 // found.context if found.context else None
    percent = min(100, tokens * 100 // window)
    ticks = _list_ticks(conversation, found, window)
    following = forecast_next(conversation, found, tokens) if has_next else None
    paid = found.cost_micros, found.calls
    return Meter(tokens, window, percent, source, cached, ticks, *paid, next=following)


def _list_ticks(
    conversation: Conversation, figures: ContextFigures, window: int
) -> tuple[Tick, ...]:
    """Return the thresholds on the context, lowest first, the same as in the inspector."""
    try:
        own = read_known_numbers(figures)
        policy = apply_in_full_ahead(effective_numbers(conversation, own), conversation)
        ahead = build_outline(policy, window, read_api_edits(policy, conversation.model))
    except ContextError:
        return ()
    found = [
        Tick(step.tokens * 100 // window, f"{write_number(step.tokens)}: {step.short}", step.tokens)
        for step in ahead.steps
        if step.tokens
    ]
    return tuple(sorted(found, key=lambda tick: tick.tokens))
