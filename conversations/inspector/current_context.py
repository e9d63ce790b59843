"""The present context: what the next request would carry, and what the policy will do to it."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.context.errors import ContextError
from conversations.context.view.view import Message
from conversations.inspector.calls import read_window
from conversations.inspector.composition import Composition, build_composition, weigh_parts
from conversations.inspector.sent_messages import catch_damage, trace_present
from conversations.log.path import Change, read_path
from conversations.models import ApiCall, Conversation
from conversations.reductions.in_full import apply_in_full_ahead
from conversations.reductions.policy import effective_policy, read_api_edits
from conversations.reductions.policy_outline import PolicyOutline, build_outline
from conversations.transcript.meter import read_meter


@dataclass(frozen=True, slots=True)
class CurrentContext:
    """`composition` is None where the log is damaged, `ahead` where the policy is invalid."""

    composition: Composition | None
    ahead: PolicyOutline | None
    problem: str
    has_reductions: bool


def read_current_context(conversation: Conversation) -> CurrentContext:
    """Weigh the messages of the shown path, scaled to the reported size."""
    gauge = read_meter(conversation)
    ahead = read_outline(conversation)
    made, problem = catch_damage(lambda: trace_present(conversation))
    bar = None
    if made is not None:
        last = ApiCall.objects.filter(conversation=conversation, purpose="reply")
        overhead = last.order_by("-pk").values_list("overhead_tokens", flat=True).first() or 0
        parts, problem = catch_damage(lambda: weigh_parts(made.view, overhead))
        bar = (
            None
            if parts is None
            else build_composition(
                parts,
                gauge.window,
                total=None if gauge.source == "none" else gauge.tokens,
                source=gauge.source,
                cached_percent=gauge.cached_percent,
                ahead=ahead,
            )
        )
    return CurrentContext(bar, ahead, problem, bool(made and made.view.edits))


def read_outline(conversation: Conversation) -> PolicyOutline | None:
    """Return what the policy in force will do; None when it is invalid."""
    try:
        policy = apply_in_full_ahead(effective_policy(conversation), conversation)
        api = read_api_edits(policy, conversation.model)
        return build_outline(policy, read_window(conversation.model), api)
    except ContextError:
        return None


def read_entries(conversation: Conversation) -> list[Message | Change]:
    """Return the entries of the shown path; raises one of DAMAGE."""
    return read_path(conversation)
