"""The reading log: who read what of other people's conversations, recorded before it is shown.

It consists of Django's log entries with an action flag of its own, so they are in the admin history
of the conversation. Entries are read-only, and a user with entries cannot be deleted.
"""

from __future__ import annotations

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType

from conversations.models import Conversation, User

#: The permission to read what other people wrote.
CONTENT = "conversations.read_content"
#: The action flag of a reading; Django's own are addition (1), change (2) and deletion (3).
READ = 4


def record_reading(
    *, reader: User, conversation: Conversation, what: str, reason: str = ""
) -> LogEntry:
    """Record that a part was read, and why."""
    name = f"conversation {conversation.public_id}"
    return _record(reader, conversation, name, what, reason)


def record_looking(*, reader: User, person: User, what: str, reason: str) -> LogEntry:
    """Record that a page of a person that is of no single conversation was looked at, and why."""
    return _record(reader, person, person.get_username(), what, reason)


def _record(
    reader: User, subject: Conversation | User, name: str, what: str, reason: str
) -> LogEntry:
    return LogEntry.objects.create(
        user=reader,
        content_type=ContentType.objects.get_for_model(type(subject)),
        object_id=str(subject.pk),
        object_repr=name,
        action_flag=READ,
        change_message=f"Read {what}." + (f" Reason: {reason}" if reason else ""),
    )
