"""Errands: calls of a conversation at rest, for its title or for a summary that a person wants.

Their turn is over, so no lease fences them: the conversation's row lock lets one open or close at a
time, and whoever closes it second finds its result and changes nothing. The turn is not locked:
choosing a version locks the conversation and then a turn that is over, and the two would wait for
each other. A call whose process died is closed like any in doubt.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from conversations.conf import conf
from conversations.models import LIVE, ApiCall, Conversation
from conversations.ports import Ending, Refused
from conversations.services import calls
from conversations.services.admission import inactive
from conversations.services.calls import Timing

#: What a call may take beyond its deadline before it is held to be lost.
GRACE = timedelta(seconds=60)


def lock_kept(conversation_id: int) -> Conversation:
    """Lock a conversation of which a call may be made; raises Refused."""
    rows = Conversation.objects.select_for_update(of=("self",)).select_related("owner")
    row = rows.filter(pk=conversation_id, deleted_at=None).first()
    if row is None:
        raise Refused("deleted", "The conversation is gone.")
    if not row.owner.is_active:
        raise inactive()
    return row


@transaction.atomic
def close_errand(*, call_id: int, ending: Ending, timing: Timing) -> None:
    """Settle the call, unless it was closed before."""
    call = _open_call(call_id)
    if call is not None:
        calls.settle_call(call=call, ending=ending, answer=None, timing=timing)


def close_lost_errands(*, everything: bool = False, now: datetime | None = None) -> int:
    """Close the calls of ended turns that nobody waits for any more; `everything`: all of them."""
    # Of a turn that is over no other call is open but one that a person asked for.
    rows = ApiCall.objects.filter(result=None).exclude(turn__state__in=LIVE)
    if not everything:
        waited = timedelta(seconds=conf.attempt_seconds) + GRACE
        rows = rows.filter(sent_at__lt=(now or timezone.now()) - waited)
    return sum(_is_closed(key) for key in list(rows.values_list("pk", flat=True)))


@transaction.atomic
def _is_closed(call_id: int) -> bool:
    call = _open_call(call_id)
    if call is not None:
        calls.lose_call(call=call)
    return call is not None


def _open_call(call_id: int) -> ApiCall | None:
    """Give the call under the lock of its conversation, if it has no result."""
    rows = Conversation.objects.select_for_update(of=("self",))
    if rows.filter(calls=call_id).first() is None:
        return None
    return ApiCall.objects.filter(pk=call_id, result=None).first()
