"""How long conversations of this site continue: learned from the newest ones, per process."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Count, Q
from django.utils import timezone

from conversations.context.policy.continuation import EVEN, Continuation, learn_continuation
from conversations.models import ApiCall, Conversation

#: The number of newest conversations to learn from, and the least age of each; one that was idle as
#: long counts as ended.
_MOST, _AGE = 2_000, timedelta(days=7)


class _Learned:
    """What this process has learned; turns read it without a query."""

    continuation: Continuation = EVEN


def current_continuation() -> Continuation:
    return _Learned.continuation


def refresh_continuation() -> None:
    """Learn again from the reply calls of the newest conversations."""
    since = timezone.now() - _AGE
    replies = Count("calls", filter=Q(calls__purpose=ApiCall.Purpose.REPLY))
    newest = Conversation.objects.filter(created_at__lt=since).order_by("-pk")[:_MOST]
    rows = Conversation.objects.filter(pk__in=newest.values("pk")).annotate(made=replies)
    _Learned.continuation = learn_continuation(
        (made, updated < since) for made, updated in rows.values_list("made", "updated_at") if made
    )
