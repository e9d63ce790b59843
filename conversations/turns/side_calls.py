"""Side calls: calls of a conversation at rest, for its title or for a summary that a person
requests.

Their turn is over, so no lease fences them: the conversation's row lock lets one open or close at a
time, and the second of two that close a call finds its result and changes nothing. The turn is not
locked: choosing a version locks the conversation and then an ended turn, so the two would deadlock.
A call whose process died is closed like any call in doubt.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from conversations.agent.ports import Ending, Refused
from conversations.budgets.admission import build_inactive_refusal
from conversations.conf import conf
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.db import transact
from conversations.log.chain import lock_conversation
from conversations.log.contents import note_contents
from conversations.log.prepared_rows import read_rows, shape_of
from conversations.log.settings_version import reading_settings
from conversations.models import LIVE, ApiCall, Conversation
from conversations.turns import calls
from conversations.turns.billed_usage import Timing

_GONE = mark_recorded(gettext_noop("The chat is gone."))
#: Raw SQL: the ORM takes longer for these than the rest of a title's end takes.
_CONVERSATION = "SELECT conversation_id FROM conversations_apicall WHERE id = %s"
_IF_OPEN = """
SELECT {columns} FROM conversations_apicall c WHERE c.id = %s
AND NOT EXISTS (SELECT 1 FROM conversations_apiresult WHERE call_id = c.id)"""
#: Time after its deadline at which a call counts as lost.
GRACE = timedelta(seconds=60)
#: How far back each sweep looks for open calls; maintenance looks at all of them.
RECENT = timedelta(days=2)


def lock_for_side_call(conversation_id: int) -> Conversation:
    """Lock a conversation for a side call; raises Refused if none may be made."""
    try:
        row = lock_conversation(conversation_id)
    except Conversation.DoesNotExist:
        raise Refused("deleted", _GONE) from None
    if row.deleted_at is not None:
        raise Refused("deleted", _GONE)
    # After the lock; it reads the owner, too.
    note_contents(row)
    if not row.owner.is_active:
        raise build_inactive_refusal()
    return row


@reading_settings()
@transact
def close_side_call(*, call_id: int, ending: Ending, timing: Timing) -> None:
    """Settle the call, unless it was closed before."""
    found = _lock_open_call(call_id)
    if found is not None:
        call, conversation = found
        calls.settle_call(
            call=call, conversation=conversation, ending=ending, answer=None, timing=timing
        )


def close_lost_side_calls(
    *, everything: bool = False, recent: bool = False, now: datetime | None = None
) -> int:
    """Close open calls of ended turns past their deadline; with `everything`, all of them.

    With `recent` only those of the last days are looked for, so that the sweep does not read every
    call there ever was.
    """
    rows = filter_lost_side_calls(everything=everything, recent=recent, now=now)
    return sum(_close_lost(key) for key in list(rows.values_list("pk", flat=True)))


def filter_lost_side_calls(
    *, everything: bool = False, recent: bool = False, now: datetime | None = None
) -> QuerySet[ApiCall]:
    """Return the calls that `close_lost_side_calls` closes."""
    # The only open calls of an ended turn are side calls.
    rows = ApiCall.objects.filter(result=None).exclude(turn__state__in=LIVE)
    if recent:
        rows = rows.filter(sent_at__gte=(now or Now()) - RECENT)
    if not everything:
        waited = timedelta(seconds=conf.attempt_seconds) + GRACE
        rows = rows.filter(sent_at__lt=(now or Now()) - waited)
    return rows


@transact
def _close_lost(call_id: int) -> bool:
    found = _lock_open_call(call_id)
    if found is not None:
        call, conversation = found
        calls.lose_call(call=call, conversation=conversation)
    return found is not None


def _lock_open_call(call_id: int) -> tuple[ApiCall, Conversation] | None:
    """Return a call without a result and its conversation, locked; None where there is none."""
    with connection.cursor() as cursor:
        cursor.execute(_CONVERSATION, [call_id])
        found = cursor.fetchone()
    if found is None:
        return None
    try:
        conversation = lock_conversation(found[0])
    except Conversation.DoesNotExist:
        # It was erased meanwhile.
        return None
    shape = shape_of(ApiCall)
    # After the lock: another process may have closed it meanwhile.
    calls = read_rows(shape, _IF_OPEN.format(columns=shape.columns("c")), [call_id])
    return (calls[0], conversation) if calls else None
