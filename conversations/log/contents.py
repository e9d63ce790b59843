"""What a conversation contains at all: one statement, so that no other asks for what is not there.

Most conversations have no pins, reductions, approvals or waiting messages, and each turn and each
frame would ask for all of them. Who reads many things of a conversation at one moment notes this on
the object first. Nobody keeps such an object: it says what was there at that moment.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from conversations.models import LIVE, Conversation

_LIVE = ", ".join(f"'{state}'" for state in LIVE)
_CONTENTS = f"""
SELECT
  EXISTS (SELECT 1 FROM conversations_transformation WHERE conversation_id = %(key)s),
  EXISTS (SELECT 1 FROM conversations_pin WHERE conversation_id = %(key)s),
  EXISTS (SELECT 1 FROM conversations_decision WHERE conversation_id = %(key)s),
  EXISTS (SELECT 1 FROM conversations_toolswitch WHERE conversation_id = %(key)s),
  EXISTS (SELECT 1 FROM conversations_queuedprompt WHERE conversation_id = %(key)s),
  EXISTS (SELECT 1 FROM conversations_mailaccount WHERE owner_id = %(owner)s),
  EXISTS (SELECT 1 FROM conversations_turn WHERE conversation_id = %(key)s AND state IN ({_LIVE})),
  (SELECT MAX(number) FROM conversations_turn WHERE conversation_id = %(key)s)
"""  # noqa: S608 - our own words


@dataclass(frozen=True, slots=True)
class Contents:
    """Whether a conversation has changes, pins and so on; `last` is its last turn's number."""

    changes: bool = True
    pins: bool = True
    decisions: bool = True
    switches: bool = True
    queue: bool = True
    mail: bool = True
    is_live: bool | None = None
    last: int | None = None


#: Of a conversation that nobody has asked about: anything may be there.
_UNKNOWN = Contents()


def note_contents(conversation: Conversation) -> Contents:
    """Read what a conversation contains, for all that is read of this object later."""
    with connection.cursor() as cursor:
        cursor.execute(_CONTENTS, {"key": conversation.pk, "owner": conversation.owner_id})
        row = cursor.fetchone()
    changes, pins, decisions, switches, queue, mail, live = map(bool, row[:-1])
    contents = Contents(
        changes, pins, decisions, switches, queue, mail, is_live=live, last=row[-1] or 0
    )
    conversation.__dict__["noted_contents"] = contents
    return contents


def read_contents(conversation: Conversation) -> Contents:
    """Return what was noted of this object; without a note everything may be there."""
    noted: Contents = conversation.__dict__.get("noted_contents", _UNKNOWN)
    return noted
