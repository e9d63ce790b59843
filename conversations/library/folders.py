"""Folders for conversations: made, renamed, deleted; a conversation is put into one or out of it.

Whatever is in a folder leaves the list by date and stands in the folder: each conversation has one
place. Deleting a folder deletes none of them. Each change locks the owner's row, so that no
conversation comes into a folder while it is deleted, and the limit on their number holds.
"""

from __future__ import annotations

import unicodedata
from uuid import UUID

from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.db import transact
from conversations.library.conversations import LibraryError
from conversations.log.legal_holds import is_owner_held, is_person_held
from conversations.log.texts import make_storable
from conversations.models import Conversation, Folder, User
from conversations.models.folders import MOST_NAME
from conversations.rendering.numbers import write_number
from conversations.turns.prompts import lock_owner

#: Folders of one person. Every page with the list shows them all.
MOST_FOLDERS = 100


def find_folder(user: User, public_id: UUID) -> Folder:
    """Return the user's own folder; raises Http404 for anyone else's."""
    return get_object_or_404(Folder, owner=user, public_id=public_id)


def list_folders(user: User) -> list[Folder]:
    """Return the user's folders by name: capitals and accents do not count, as in a dictionary."""
    rows = Folder.objects.filter(owner=user)
    return sorted(rows, key=lambda row: (_strip_accents(row.key), row.key))


def count_returning(folder: Folder) -> int:
    """Return how many conversations go back to the list, or the archive, with the folder."""
    return Conversation.objects.filter(folder=folder, deleted_at=None).count()


@transact
def add_folder(*, owner_id: int, name: str) -> Folder:
    """Add a folder, open in the list; raises LibraryError."""
    lock_owner(owner_id)
    name = _clean_name(name)
    rows = Folder.objects.filter(owner_id=owner_id)
    _demand_free(rows.filter(key=_fold(name)).exists())
    if rows.count() >= MOST_FOLDERS:
        words = _("You have %(most)s folders, and there cannot be more. Delete one first.")
        raise LibraryError("full", words % {"most": write_number(MOST_FOLDERS)})
    return Folder.objects.create(
        owner_id=owner_id, name=name, key=_fold(name), opened_at=timezone.now()
    )


@transact
def find_or_add_folder(*, owner_id: int, name: str) -> Folder | None:
    """Return the folder of this name, a new one if need be; None where there cannot be one."""
    lock_owner(owner_id)
    name = _flatten(name)[:MOST_NAME].strip()
    found = Folder.objects.filter(owner_id=owner_id, key=_fold(name)).first()
    try:
        return found or add_folder(owner_id=owner_id, name=name)
    except LibraryError:
        return None


@transact
def rename_folder(*, folder: Folder, name: str) -> None:
    """Give the folder another name; raises LibraryError."""
    lock_owner(folder.owner_id)
    name = _clean_name(name)
    others = Folder.objects.filter(owner_id=folder.owner_id).exclude(pk=folder.pk)
    _demand_free(others.filter(key=_fold(name)).exists())
    if not Folder.objects.filter(pk=folder.pk).update(name=name, key=_fold(name)):
        raise Folder.DoesNotExist("it was deleted")


@transact
def delete_folder(*, folder: Folder) -> None:
    """Delete the folder; what is in it goes back to the list. Raises LibraryError where held."""
    lock_owner(folder.owner_id)
    if is_person_held(folder.owner_id):
        raise LibraryError(
            "held",
            _("You are under a legal hold: your folders cannot be deleted until it is released."),
        )
    Folder.objects.filter(pk=folder.pk).delete()


@transact
def delete_folders(*, owner_id: int) -> None:
    """Delete all folders of a person who is not held, as part of erasing their data."""
    lock_owner(owner_id)
    Folder.objects.filter(~is_owner_held(), owner_id=owner_id).delete()


def open_folder(*, folder: Folder, is_open: bool) -> None:
    """Open the folder in the list, or close it."""
    Folder.objects.filter(pk=folder.pk).update(opened_at=timezone.now() if is_open else None)


@transact
def move_conversation(*, conversation: Conversation, folder: Folder | None) -> None:
    """Put the conversation into a folder of its owner, which opens it, or into none.

    Raises LibraryError for a temporary conversation, and DoesNotExist for what is gone.
    """
    lock_owner(conversation.owner_id)
    if conversation.is_temporary:
        raise LibraryError("temporary", _("A temporary chat is in no list and in no folder."))
    if folder is not None:
        folder = Folder.objects.get(pk=folder.pk, owner_id=conversation.owner_id)
        open_folder(folder=folder, is_open=True)
    # An update and not a save: `updated_at` is the time of the last message.
    if not Conversation.objects.filter(pk=conversation.pk).update(folder=folder):
        raise Conversation.DoesNotExist("it was erased")


@transact
def move_to_new_folder(*, conversation: Conversation, name: str) -> Folder:
    """Put the conversation into a folder that is made for it; raises as both do, with neither."""
    made = add_folder(owner_id=conversation.owner_id, name=name)
    move_conversation(conversation=conversation, folder=made)
    return made


def _clean_name(name: str) -> str:
    """Return the name on one line; raises LibraryError."""
    name = _flatten(name)
    if not name:
        raise LibraryError("empty", _("Write a name first."))
    if len(name) > MOST_NAME:
        words = _("A name has at most %(most)s characters.")
        raise LibraryError("too_long", words % {"most": write_number(MOST_NAME)})
    return name


def _flatten(name: str) -> str:
    return " ".join(unicodedata.normalize("NFC", make_storable(name)).split())


def _fold(name: str) -> str:
    return name.casefold()


def _strip_accents(key: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", key) if not unicodedata.combining(c))


def _demand_free(is_taken: bool) -> None:
    if is_taken:
        raise LibraryError("taken", _("You have a folder of this name already."))
