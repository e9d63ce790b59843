"""Actions on a conversation in the list: rename, star, archive, delete, restore.

None of them changes the order of the list, which follows the last message. A deleted conversation
disappears from every page, list and search at once; its log stays unchanged until its time in the
trash is over (library/erase.py). What a legal hold covers is neither deleted nor erased.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.conf import conf
from conversations.db import transact
from conversations.library.retention import find_rule_against
from conversations.log.chain import lock_conversation
from conversations.log.legal_holds import is_held
from conversations.log.page_version import raise_version
from conversations.log.search_index import index_title
from conversations.log.texts import make_storable
from conversations.models import IS_LIVE, Conversation, Turn
from conversations.rendering.numbers import write_number
from conversations.rendering.refusal import RefusalError
from conversations.templatetags.recorded import translated
from conversations.turns.prompts import lock_owner
from conversations.turns.turns import request_stop

MOST_TITLE_CHARS = 200
#: Most starred conversations, which are all on the first page of the list; no star is added above.
MOST_STARRED = 100


class LibraryError(RefusalError):
    """The action is refused; `text` is the reason for the person."""


@transact
def rename_conversation(*, conversation: Conversation, title: str) -> str:
    """Store another title on one line and return it as stored; raises LibraryError."""
    title = " ".join(make_storable(title).split())
    if not title:
        raise LibraryError("empty", _("Write a title first."))
    if len(title) > MOST_TITLE_CHARS:
        words = _("A title has at most %(most)s characters.")
        raise LibraryError("too_long", words % {"most": write_number(MOST_TITLE_CHARS)})
    row = lock_conversation(conversation.pk)
    row.title = title
    _update(row, title=title, titled_by="person")
    raise_version(row.pk)
    index_title(conversation=row)
    return title


@transact
def star_conversation(*, conversation: Conversation, is_starred: bool) -> None:
    """Star the conversation, which keeps it at the top of the list, or remove the star.

    One in the archive comes back to the list. Raises LibraryError where too many have one: the
    list's first page shows them all.
    """
    lock_owner(conversation.owner_id)
    if not is_starred:
        _update(conversation, pinned_at=None)
        return
    if not _has_room_for_star(conversation):
        words = _("At most %(most)s chats can have a star. Remove one elsewhere first.")
        raise LibraryError("too_many", words % {"most": write_number(MOST_STARRED)})
    at = conversation.pinned_at or timezone.now()
    _update(conversation, pinned_at=at, archived_at=None)


def _has_room_for_star(conversation: Conversation) -> bool:
    """Return whether the list shows it with a star beside the others; its owner is locked."""
    rows = Conversation.objects.filter(owner=conversation.owner_id, deleted_at=None)
    others = rows.exclude(pinned_at=None).exclude(pk=conversation.pk)
    return others.count() < MOST_STARRED


def archive_conversation(*, conversation: Conversation, is_archived: bool) -> None:
    """Archive the conversation, which also removes its star, or put it back into the list."""
    if is_archived:
        _update(
            conversation, archived_at=conversation.archived_at or timezone.now(), pinned_at=None
        )
    else:
        _update(conversation, archived_at=None)


def delete_conversation(*, conversation: Conversation) -> Turn | None:
    """Move the conversation to the trash; request a stop of the running turn and return it.

    A temporary one is due for erasure at once, and so is any where the trash keeps nothing.
    Raises LibraryError where it is held.
    """
    with transaction.atomic():
        row = lock_conversation(conversation.pk)
        _demand_no_hold(Conversation.objects.filter(pk=row.pk))
        if row.deleted_at is None:
            now = timezone.now()
            days = 0 if row.is_temporary else max(0, conf.trash_days)
            _update(
                row,
                deleted_at=now,
                erase_at=now + timedelta(days=days),
                removed_by_rule="",
            )
    # Outside the lock: a worker locks its turn first, then the conversation (lock order).
    turn = row.turns.filter(IS_LIVE).first()
    if turn is not None:
        request_stop(turn=turn)
    return turn


@transact
def restore_conversation(*, conversation: Conversation) -> None:
    """Restore the conversation from the trash, unchanged but for a star that has no room any more.

    Raises LibraryError where a rule would take it again at once.
    """
    lock_owner(conversation.owner_id)
    row = lock_conversation(conversation.pk)
    if rule := find_rule_against(row):
        words = _("A rule of this site removes this chat, so it cannot come back: %s.")
        raise LibraryError("rule", words % translated(rule))
    star = row.pinned_at if row.pinned_at is not None and _has_room_for_star(row) else None
    _update(
        row,
        deleted_at=None,
        erase_at=None,
        removed_by_rule="",
        restored_at=timezone.now(),
        pinned_at=star,
    )


@transact
def empty_trash(*, owner_id: int, public_id: UUID | None = None) -> None:
    """Make the owner's trash, or one conversation in it, due for erasure now.

    What is held stays as it is; raises LibraryError where the one conversation is.
    """
    rows = Conversation.objects.filter(owner_id=owner_id).exclude(deleted_at=None)
    if public_id is not None:
        rows = rows.filter(public_id=public_id)
        _demand_no_hold(rows)
    rows.filter(~is_held()).update(erase_at=timezone.now())


def delete_everything(*, owner_id: int) -> list[Turn]:
    """Make all of the owner's conversations due for erasure now; returns the running turns.

    What is held stays as it is (`legal_holds.list_held`).
    """
    now = timezone.now()
    rows = Conversation.objects.filter(~is_held(), owner_id=owner_id)
    with transaction.atomic():
        rows.filter(deleted_at=None).update(deleted_at=now)
        rows.exclude(deleted_at=None).update(erase_at=now)
    live = Turn.objects.filter(IS_LIVE, conversation__owner_id=owner_id)
    turns = list(live.exclude(conversation__deleted_at=None))
    for turn in turns:
        request_stop(turn=turn)
    return turns


def _demand_no_hold(rows: QuerySet[Conversation]) -> None:
    if rows.filter(is_held()).exists():
        raise LibraryError(
            "held",
            _(
                "This chat is under a legal hold: it can be neither deleted nor erased until the"
                " hold is released."
            ),
        )


def _update(conversation: Conversation, **values: object) -> None:
    # An update and not a save: `updated_at` is the time of the last message.
    if not Conversation.objects.filter(pk=conversation.pk).update(**values):
        raise Conversation.DoesNotExist("it was erased")
