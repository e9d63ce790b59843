"""Files that messages name: each is an attachment of the conversation, and its text is there.

That a text is the one its digest names is looked at with all other texts.
"""

from __future__ import annotations

from collections.abc import Iterator

from conversations.context import attached
from conversations.models import Attachment, Conversation, Message
from conversations.services.audit.report import Problem
from conversations.services.audit.rows import DAMAGE, words


def check_files(conversation: Conversation) -> Iterator[Problem]:
    """Look for each file that a prompt of the conversation names."""
    place = str(conversation.public_id)
    files = Attachment.objects.filter(conversation=conversation, data__text__isnull=False)
    held = set(files.values_list("data_id", flat=True))
    rows = Message.objects.filter(conversation=conversation, kind="prompt")
    for key, content in rows.order_by("pk").values_list("pk", "content"):
        try:
            missing = {one.digest for one in attached.named(content)} - held
        except DAMAGE as error:
            yield Problem("message", str(key), f"cannot be read: {words(error)}", place)
            continue
        for digest in sorted(missing):
            yield Problem("message", str(key), f"names a file that is not there: {digest}", place)
