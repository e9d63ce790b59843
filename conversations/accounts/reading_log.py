"""The reading log: who read what of other people's conversations, recorded before it is shown.

It consists of Django's log entries with an action flag of its own, so they are in the admin history
of the conversation. Entries are read-only, and a user with entries cannot be deleted.
"""

from __future__ import annotations

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType

from conversations.context.translation import gettext_noop, mark_recorded
from conversations.models import Conversation, User

#: The permission to read what other people wrote.
CONTENT = "conversations.read_content"
#: The action flag of a reading; Django's own are addition (1), change (2) and deletion (3).
READ = 4
_SAID = mark_recorded(gettext_noop("Read %(part)s."))
_SAID_WHY = mark_recorded(gettext_noop("Read %(part)s. Reason: %(reason)s"))
#: The parts that may be read.
CHANGES = mark_recorded(gettext_noop("the changes of transformation %(entry)s"))
ATTACHMENT = mark_recorded(gettext_noop("an attachment's name"))
ERROR = mark_recorded(gettext_noop("the error of turn %(entry)s"))
TOOL_CALL = mark_recorded(gettext_noop("tool call %(entry)s"))
TRIAL = mark_recorded(gettext_noop("it, to see what another policy would have done"))
MESSAGES = mark_recorded(gettext_noop("its messages from %(entry)s on"))
PARAMETERS = mark_recorded(gettext_noop("the parameters of call %(entry)s"))
REQUEST = mark_recorded(gettext_noop("the request of call %(entry)s"))
AS_PERSON = mark_recorded(gettext_noop("%(path)s as %(person)s"))


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
        change_message=(_SAID_WHY if reason else _SAID) % {"part": what, "reason": reason},
    )
