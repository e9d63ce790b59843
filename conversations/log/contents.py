"""Notes on a `Conversation` instance which kinds of related rows exist (pins, reductions, ...).

One query, so that code which renders the conversation skips the queries for what is absent: most
conversations have no pins, reductions, approvals or waiting messages. It reads the owner, the
numbers of the last turn and the version of the settings as well. Read under the conversation's
lock, in a query after the one that locks, a note is valid until just after the commit. Never keep
the instance longer.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from conversations.log.prepared_rows import shape_of
from conversations.log.settings_version import VERSION, note_settings_version
from conversations.models import LIVE, Conversation, Turn, User

_LIVE = ", ".join(f"'{state}'" for state in LIVE)
_CONTENTS = f"""
SELECT
  EXISTS (SELECT 1 FROM conversations_transformation WHERE conversation_id = %(key)s),
  EXISTS (SELECT 1 FROM conversations_pin WHERE conversation_id = %(key)s),
  EXISTS (SELECT 1 FROM conversations_decision WHERE conversation_id = %(key)s),
  EXISTS (SELECT 1 FROM conversations_toolswitch WHERE conversation_id = %(key)s),
  EXISTS (SELECT 1 FROM conversations_queuedprompt WHERE conversation_id = %(key)s),
  EXISTS (SELECT 1 FROM conversations_mailaccount WHERE owner_id = %(owner)s),
  EXISTS (SELECT 1 FROM conversations_reservation WHERE call_id = %(call)s),
  (SELECT number FROM conversations_turn WHERE conversation_id = %(key)s AND state IN ({_LIVE})),
  (SELECT MAX(number) FROM conversations_turn WHERE conversation_id = %(key)s),
  (SELECT COUNT(*) FROM conversations_turn WHERE conversation_id = %(key)s AND parent = (
    SELECT parent FROM conversations_turn WHERE conversation_id = %(key)s
    ORDER BY number DESC LIMIT 1)),
  (SELECT MAX(number) FROM conversations_apicall WHERE turn_id = %(turn)s),
  {VERSION}, {{owner}}
FROM conversations_user u WHERE u.id = %(owner)s
"""  # noqa: S608 - our own words


@dataclass(frozen=True, slots=True)
class Contents:
    """Whether a conversation has changes, pins and so on.

    `live_turn` is the running turn's number, 0 for none and None where nobody asked. `last` is its
    last turn's number, and `versions` counts that turn and its versions. Of the turn
    and the call that were asked about, `calls` is the number of the turn's last call, and `holds`
    says whether the call ever held anything.
    """

    changes: bool = True
    pins: bool = True
    decisions: bool = True
    switches: bool = True
    queue: bool = True
    mail: bool = True
    live_turn: int | None = None
    last: int | None = None
    versions: int | None = None
    holds: bool = True
    calls: int | None = None
    #: A turn as the noted moment's transaction left it.
    turn: Turn | None = None


#: Of a conversation that nobody has asked about: anything may be there.
_UNKNOWN = Contents()


def note_contents(
    conversation: Conversation, *, turn: Turn | None = None, call_id: int = 0
) -> Contents:
    """Read what a conversation contains, for all that is read of this object later.

    `turn` is kept with it, as its transaction has just written it.
    """
    owner = shape_of(User)
    asked = {
        "key": conversation.pk,
        "owner": conversation.owner_id,
        "turn": turn.pk if turn is not None else 0,
        "call": call_id,
    }
    with connection.cursor() as cursor:
        cursor.execute(_CONTENTS.format(owner=owner.columns("u")), asked)
        row = cursor.fetchone()
    flags, (live, last, versions, calls, version) = map(bool, row[:7]), row[7:12]
    changes, pins, decisions, switches, queue, mail, holds = flags
    note_settings_version(version)
    conversation.owner = owner.read(row[12:])
    contents = Contents(
        changes, pins, decisions, switches, queue, mail, live_turn=live or 0,
        last=last or 0, versions=versions, holds=holds, calls=calls or 0, turn=turn,
    )  # fmt: skip
    conversation.__dict__["noted_contents"] = contents
    return contents


def read_contents(conversation: Conversation) -> Contents:
    """Return what was noted of this object; without a note everything may be there."""
    noted: Contents = conversation.__dict__.get("noted_contents", _UNKNOWN)
    return noted
