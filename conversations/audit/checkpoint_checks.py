"""Compare the checkpoint of a conversation's view, whole, with the fold of the log."""

from __future__ import annotations

from collections.abc import Iterator

from conversations.log.findings import DAMAGE, Problem, describe_error
from conversations.log.loaded_path import LoadedPath, Start, read_checkpoint
from conversations.log.path import read_path
from conversations.models import Conversation, ViewCheckpoint


def check_checkpoint(conversation: Conversation) -> Iterator[Problem]:
    """Yield a problem if the checkpoint differs: turns would not send what the log says."""
    row = ViewCheckpoint.objects.filter(conversation=conversation).first()
    if row is None:
        return
    place, key = str(conversation.public_id), str(row.pk)
    try:
        stored = read_checkpoint(conversation, row)
        folded = LoadedPath(Start(), read_path(conversation, row.seq)).continue_from()
    except DAMAGE as error:
        yield Problem("viewcheckpoint", key, f"cannot be read: {describe_error(error)}", place)
        return
    if stored != folded:
        yield Problem("viewcheckpoint", key, f"is not the view after entry {row.seq}", place)
