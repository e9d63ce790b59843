"""Keeping conversations: named, pinned, archived, thrown away, brought back.

None of it counts as news: the place in the list is that of the last message. What is thrown away is
gone from every page, list and search at once; the log is untouched until its time in the trash is
over (library/erase.py).
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from conversations.conf import conf
from conversations.log.chain import locked
from conversations.log.search_index import index_title
from conversations.log.texts import storable
from conversations.models import LIVE, Conversation, Turn
from conversations.turns.turns import request_stop

MOST_TITLE_CHARS = 200


class LibraryError(Exception):
    """It was not done; the text is for the person who asked."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


@transaction.atomic
def rename_conversation(*, conversation: Conversation, title: str) -> str:
    """Return it another title, on one line; return the title as it was stored."""
    title = " ".join(storable(title).split())
    if not title:
        raise LibraryError("empty", "Write a title first.")
    if len(title) > MOST_TITLE_CHARS:
        raise LibraryError("too_long", f"A title has at most {MOST_TITLE_CHARS} characters.")
    row = locked(conversation.pk)
    row.title = title
    _update(row, title=title, titled_by="person")
    index_title(conversation=row)
    return title


def pin_conversation(*, conversation: Conversation, is_pinned: bool) -> None:
    """Put it at the top of the list, or back among the others."""
    at = (conversation.pinned_at or timezone.now()) if is_pinned else None
    _update(conversation, pinned_at=at)


def archive_conversation(*, conversation: Conversation, is_archived: bool) -> None:
    """Take it out of the list, or back in; what is archived is not pinned."""
    if is_archived:
        _update(
            conversation, archived_at=conversation.archived_at or timezone.now(), pinned_at=None
        )
    else:
        _update(conversation, archived_at=None)


def delete_conversation(*, conversation: Conversation) -> Turn | None:
    """Throw it away, for now; returns the running turn, which is asked to stop."""
    with transaction.atomic():
        row = locked(conversation.pk)
        if row.deleted_at is None:
            now = timezone.now()
            _update(row, deleted_at=now, erase_at=now + timedelta(days=max(0, conf.trash_days)))
    # Behind the lock: a worker locks its turn first, and then the conversation.
    turn = row.turns.filter(state__in=LIVE).first()
    if turn is not None:
        request_stop(turn=turn)
    return turn


@transaction.atomic
def restore_conversation(*, conversation: Conversation) -> None:
    """Take it out of the trash, as it was."""
    _update(locked(conversation.pk), deleted_at=None, erase_at=None)


@transaction.atomic
def empty_trash(*, owner_id: int, public_id: UUID | None = None) -> None:
    """Let what is in the owner's trash be erased from now on: all of it, or one conversation."""
    rows = Conversation.objects.filter(owner_id=owner_id).exclude(deleted_at=None)
    if public_id is not None:
        rows = rows.filter(public_id=public_id)
    rows.update(erase_at=timezone.now())


def delete_everything(*, owner_id: int) -> list[Turn]:
    """Throw away all of the owner's conversations, to be erased from now on; gives what runs."""
    now = timezone.now()
    rows = Conversation.objects.filter(owner_id=owner_id)
    with transaction.atomic():
        rows.filter(deleted_at=None).update(deleted_at=now)
        rows.update(erase_at=now)
    turns = list(Turn.objects.filter(conversation__owner_id=owner_id, state__in=LIVE))
    for turn in turns:
        request_stop(turn=turn)
    return turns


def _update(conversation: Conversation, **values: object) -> None:
    # An update and not a save: `updated_at` says when something was said last.
    if not Conversation.objects.filter(pk=conversation.pk).update(**values):
        raise Conversation.DoesNotExist("it was erased")
