"""Access to a conversation: by its owner, by a link of theirs, by staff for review, by a turn."""

from __future__ import annotations

from uuid import UUID

from django.db import connection
from django.db.models import F, Q, QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils import timezone

from conversations.accounts.api_tokens import digest_secret
from conversations.budgets.prices import filter_models_of
from conversations.conf import conf
from conversations.log.prepared_rows import shape_of
from conversations.log.settings_version import VERSION, note_settings_version
from conversations.models import (
    IS_LIVE,
    LIVE,
    Conversation,
    QueuedPrompt,
    SharedLink,
    Turn,
    User,
)

#: What is in the trash for a time. What was due from its deletion on, as a temporary conversation
#: is, is in no list while its answer stops, and is not brought back.
IN_TRASH = Q(erase_at__gt=F("deleted_at"))


def load_owned_conversation(user: User, public_id: UUID | str) -> Conversation:
    """Return the user's own conversation; raises Http404 for anyone else's."""
    field, shape = Conversation._meta.get_field("public_id"), shape_of(Conversation)
    key = field.get_db_prep_value(field.to_python(public_id), connection)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {VERSION}, {shape.columns()} FROM conversations_conversation"  # noqa: S608
            " WHERE owner_id = %s AND public_id = %s AND deleted_at IS NULL",
            [user.pk, key],
        )
        values = cursor.fetchone()
    if values is None:
        raise Http404("no such conversation")
    note_settings_version(values[0])
    return shape.read(values[1:])


def list_owned(user: User) -> QuerySet[Conversation]:
    """Return the user's conversations that are not in the trash."""
    return Conversation.objects.filter(owner=user, deleted_at=None)


def list_kept(user: User) -> QuerySet[Conversation]:
    """Return those of the user's conversations that lists show: no temporary ones."""
    return list_owned(user).filter(erase_at=None)


def load_any_conversation(public_id: UUID | str) -> Conversation:
    """Return any conversation, for review; the caller has checked the permission."""
    return get_object_or_404(Conversation, public_id=public_id)


class LogInNeeded(Exception):
    """A link lets in only people who are logged in."""


def load_shared_link(token: str, *, is_logged_in: bool) -> SharedLink:
    """Return the link with this token, with its conversation; raises Http404 and LogInNeeded.

    One that never was, one whose time is over or that was revoked, and one to what is in the trash
    or erased, are alike.
    """
    if conf.sharing not in ("people", "public"):
        raise Http404("links are off")
    if not is_logged_in and conf.sharing != "public":
        raise LogInNeeded
    rows = list_open_links().select_related("conversation")
    link = get_object_or_404(rows, digest=digest_secret(token))
    if not is_logged_in and link.audience != SharedLink.Audience.PUBLIC:
        raise LogInNeeded
    return link


def list_open_links() -> QuerySet[SharedLink]:
    """Return the links that let somebody in now, where the site has links at all."""
    return SharedLink.objects.filter(
        Q(expires_at=None) | Q(expires_at__gt=timezone.now()),
        revoked_at=None,
        conversation__deleted_at=None,
        conversation__erase_at=None,
        conversation__owner__is_active=True,
    )


def load_conversation(conversation_id: int) -> Conversation:
    """Return the conversation of an authorised turn, with its owner."""
    whole, owner = shape_of(Conversation), shape_of(User)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {whole.columns('c')}, {owner.columns('u')} FROM conversations_conversation c"  # noqa: S608
            " JOIN conversations_user u ON u.id = c.owner_id WHERE c.id = %s",
            [conversation_id],
        )
        values = cursor.fetchone()
    if values is None:
        raise Conversation.DoesNotExist(f"conversation {conversation_id}")
    found = whole.read(values[: whole.width])
    found.owner = owner.read(values[whole.width :])
    return found


def is_stored(conversation: Conversation) -> bool:
    """Return whether the conversation still exists, in the trash or not."""
    return Conversation.objects.filter(pk=conversation.pk).exists()


def load_owned_turn(user: User, public_id: UUID | str, number: int) -> Turn:
    rows = Turn.objects.select_related("conversation").filter(conversation__in=list_owned(user))
    return get_object_or_404(rows, conversation__public_id=public_id, number=number)


def find_live_turn(conversation: Conversation) -> Turn | None:
    return conversation.turns.filter(IS_LIVE).first()


def is_over(turn_id: int) -> bool:
    """Return whether a turn that exists has ended."""
    return Turn.objects.filter(pk=turn_id).exclude(state__in=LIVE).exists()


def was_sent(user: User, client_id: UUID) -> bool:
    """Return whether a message with that id was already accepted; sending it again adds nothing."""
    mine = {"conversation__owner": user, "client_id": client_id}
    return Turn.objects.filter(**mine).exists() or QueuedPrompt.objects.filter(**mine).exists()


def find_newest(user: User) -> Conversation | None:
    return list_kept(user).filter(archived_at=None).order_by("-updated_at").first()


def list_usable_models(owner_id: int) -> list[str]:
    return list(filter_models_of(owner_id).values_list("pk", flat=True))
