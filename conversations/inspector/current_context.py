"""The present: what the next request would carry, and what the policy has in store for it."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.context.errors import ContextError
from conversations.context.view.view import Message
from conversations.inspector.calls import window_of
from conversations.inspector.composition import Composition, composition, weighed
from conversations.inspector.forecast import Outlook, outlook
from conversations.inspector.sent_messages import present, unless_damaged
from conversations.log.path import Change, path
from conversations.models import ApiCall, Conversation
from conversations.reductions.policy import effective_policy
from conversations.transcript.meter import read_meter


@dataclass(frozen=True, slots=True)
class Now:
    """`composition` is None where the log is damaged; `ahead` where the policy's numbers clash."""

    composition: Composition | None
    ahead: Outlook | None
    problem: str
    has_reductions: bool


def now(conversation: Conversation) -> Now:
    """Weigh the path that is shown; what was reported anchors the whole."""
    gauge = read_meter(conversation)
    ahead = ahead_of(conversation)
    made, problem = unless_damaged(lambda: present(conversation))
    bar = None
    if made is not None:
        last = ApiCall.objects.filter(conversation=conversation, purpose="reply")
        overhead = last.order_by("-pk").values_list("overhead_tokens", flat=True).first()
        bar = composition(
            weighed(made.view, overhead or 0),
            gauge.window,
            total=None if gauge.source == "none" else gauge.tokens,
            source=gauge.source,
            cached_percent=gauge.cached_percent,
            ahead=ahead,
        )
    return Now(bar, ahead, problem, bool(made and made.view.edits))


def ahead_of(conversation: Conversation) -> Outlook | None:
    """Say what the policy in force will do."""
    try:
        return outlook(effective_policy(conversation), window_of(conversation.model))
    except ContextError:
        return None


def entries_of(conversation: Conversation) -> list[Message | Change]:
    """Give the entries of the path that is shown; raises one of DAMAGE."""
    return path(conversation)
