"""Legal holds: what nobody erases or moves to the trash while a hold is open.

A hold is of a person, which covers every chat of theirs, later ones included, or of one chat. It is
asked for wherever a chat goes: by a rule, by its owner, by a command. An erasure looks for holds
once more under the lock that placing one needs, so it never overtakes a hold; moving to the trash
may, and then the chat is held in the trash. A hold covers what a chat consists of, its attached
files included. One of a person also covers files that were not sent, mail accounts, and the
workspace: there what is replaced or deleted goes to the trash of files, from which nothing is
discarded, not even for room; saved prompts, which are neither changed nor deleted; and folders,
which are not deleted. Whoever discards any of it has locked the person's row, as placing such a
hold does.

Who is held is told so, without the reason, on the page of their data: a deletion that is silently
not done would be a lie, and the refusal tells as much.
"""

from __future__ import annotations

from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from conversations.db import transact
from conversations.log.chain import append_row, lock_site_chain
from conversations.models import Conversation, HoldRelease, LegalHold, User
from conversations.rendering.refusal import RefusalError

MOST_CHARS = 500


class HoldError(RefusalError):
    """A hold cannot be placed or released; the text is for people."""


def list_open_holds() -> QuerySet[LegalHold]:
    return LegalHold.objects.filter(release=None)


def is_held() -> Exists:
    """Return the condition on conversations that a hold is open on them or on their owner."""
    of_person = Q(conversation=None, owner_id=OuterRef("owner_id"))
    return Exists(list_open_holds().filter(Q(conversation=OuterRef("public_id")) | of_person))


def list_held(owner_id: int) -> QuerySet[Conversation]:
    """Return the person's conversations that are held, those in the trash included."""
    return Conversation.objects.filter(is_held(), owner_id=owner_id)


def is_owner_held() -> Exists:
    """Return the condition on rows with an owner that a hold is open on this person as such."""
    return Exists(list_open_holds().filter(conversation=None, owner_id=OuterRef("owner_id")))


def is_person_held(owner_id: int) -> bool:
    """Return whether a hold is open on a person as such."""
    return list_open_holds().filter(owner_id=owner_id, conversation=None).exists()


@transact
def place_hold(
    *, actor_id: int, reason: str, owner_id: int | None = None, public_id: UUID | None = None
) -> LegalHold:
    """Hold what a person has or, by `public_id`, one chat; raises HoldError."""
    reason = _clean(reason)
    if public_id is not None:
        rows = Conversation.objects.select_for_update().filter(public_id=public_id)
        row = (rows if owner_id is None else rows.filter(owner_id=owner_id)).first()
        if row is None:
            raise HoldError("gone", _("There is no such chat, or not of this person."))
        owner_id = row.owner_id
    if owner_id is None:
        raise HoldError("empty", _("Choose a person or a chat."))
    if public_id is None:
        User.objects.select_for_update(no_key=True).only("pk").get(pk=owner_id)
    hold = LegalHold(owner_id=owner_id, conversation=public_id, reason=reason, actor_id=actor_id)
    append_row(hold, lock_site_chain())
    return hold


@transact
def release_hold(*, hold_id: int, actor_id: int, reason: str) -> HoldRelease:
    """End a hold; raises HoldError."""
    reason = _clean(reason)
    end = lock_site_chain()
    if not list_open_holds().filter(pk=hold_id).exists():
        raise HoldError("released", _("This hold has been released already."))
    release = HoldRelease(hold_id=hold_id, reason=reason, actor_id=actor_id)
    append_row(release, end)
    return release


def _clean(reason: str) -> str:
    reason = " ".join(reason.split())
    if not reason:
        raise HoldError("reason", _("Write the reason: it stays on record."))
    if len(reason) > MOST_CHARS:
        raise HoldError(
            "reason", _("A reason has at most %(count)s characters.") % {"count": MOST_CHARS}
        )
    return reason
