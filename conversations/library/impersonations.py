"""Impersonation: a superuser looks at the site as another person, to see what they see.

It is off unless the site sets how many minutes one lasts (`AGENTWEB_IMPERSONATION_MINUTES`). It
shows and changes nothing: see agentweb/site/impersonation.py. Its begin and its end are links of
the site's chain, and the person is shown them. One that nobody stops ends by its time; the sweep
then writes the end.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.accounts import reading_log
from conversations.accounts.reading_log import CONTENT, record_looking, record_reading
from conversations.conf import conf
from conversations.db import transact
from conversations.log.chain import append_row, lock_site_chain
from conversations.models import Conversation, Impersonation, ImpersonationEnd, User

#: Its name in the session of who looks.
IMPERSONATION = "impersonation"
#: Newest first, on the person's page.
MOST_SHOWN = 20


class ImpersonationError(Exception):
    """It is not allowed; the text is for the superuser."""

    code = "impersonation_refused"


def is_impersonation_allowed(actor: User) -> bool:
    """Return whether this person may look at the site as others."""
    is_on = conf.impersonation_minutes > 0
    return is_on and actor.is_superuser and actor.has_perm(CONTENT)


@transact
def start_impersonation(*, actor: User, person: User, reason: str) -> Impersonation:
    """Record that a superuser looks at the site as a person; raises ImpersonationError."""
    if not is_impersonation_allowed(actor):
        raise ImpersonationError(_("This site does not let you look at it as another person."))
    if person.is_superuser or not person.is_active:
        raise ImpersonationError(_("Superusers and closed accounts cannot be looked at."))
    until = timezone.now() + timedelta(minutes=conf.impersonation_minutes)
    row = Impersonation(person=person, actor=actor, reason=reason, until=until)
    append_row(row, lock_site_chain())
    return row


def find_impersonation(
    *, key: int, actor_id: int, now: datetime | None = None
) -> Impersonation | None:
    """Return what is still allowed of this superuser, or None."""
    rows = Impersonation.objects.select_related("person", "actor")
    row = rows.filter(
        pk=key,
        actor=actor_id,
        end=None,
        until__gt=now or timezone.now(),
        person__is_active=True,
        person__is_superuser=False,
    ).first()
    return row if row is not None and is_impersonation_allowed(row.actor) else None


def record_look(row: Impersonation, *, path: str, public_id: UUID | None = None) -> None:
    """Record what is looked at: a part of a chat of the person's, or another page of theirs."""
    what = reading_log.AS_PERSON % {"path": path[:200], "person": row.person.get_username()}
    chats = Conversation.objects.filter(owner=row.person_id)
    chat = None if public_id is None else chats.filter(public_id=public_id).first()
    if chat is not None:
        record_reading(reader=row.actor, conversation=chat, what=what, reason=row.reason)
    else:
        record_looking(reader=row.actor, person=row.person, what=what, reason=row.reason)


@transact
def end_impersonation(*, key: int) -> None:
    """Record the end, once."""
    end = lock_site_chain()
    if Impersonation.objects.filter(pk=key, end=None).exists():
        append_row(ImpersonationEnd(impersonation_id=key), end)


def end_expired_impersonations(*, now: datetime | None = None) -> int:
    """Record the end of those whose time is over; return how many."""
    rows = Impersonation.objects.filter(end=None, until__lte=now or timezone.now())
    keys = list(rows.values_list("pk", flat=True))
    for key in keys:
        end_impersonation(key=key)
    return len(keys)


def list_impersonations(person_id: int) -> list[Impersonation]:
    """Return who looked at the site as this person, the newest first."""
    rows = Impersonation.objects.filter(person=person_id).select_related("actor", "end")
    return list(rows.order_by("-pk")[:MOST_SHOWN])
