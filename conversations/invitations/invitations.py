"""Invitations: made by staff with the right or by a command, used once by whoever has the link.

The link is random and stored nowhere; the database has its digest. Groups are given by superusers
alone, as everywhere. An invitation ends when it is used, withdrawn or too old, and when the person
who made it is no longer active. Each decision is a link of the site's chain.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from enum import Enum

from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.utils import timezone

from conversations.accounts.api_tokens import digest_secret
from conversations.db import transact
from conversations.log.chain import append_row, lock_site_chain
from conversations.models import Invitation, InvitationDecision, User

Kind = InvitationDecision.Kind
#: Days that a link works: at most, and where nobody says otherwise.
MOST_DAYS, USUAL_DAYS = 30, 7


class InvitationState(Enum):
    OPEN = "open"
    USED = "used"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class InvitationRefused(Exception):
    """The link does not work, or not for this; `code` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@transact
def make_invitation(
    *, made_by: User | None, email: str = "", groups: Collection[Group] = (), days: int = USUAL_DAYS
) -> tuple[Invitation, str]:
    """Make an invitation; return it and the token of its link, which cannot be shown again."""
    if groups and made_by is not None and not made_by.is_superuser:
        raise InvitationRefused("groups")
    token = secrets.token_urlsafe(24)
    row = Invitation.objects.create(
        digest=digest_secret(token),
        email=email,
        made_by=made_by,
        expires_at=timezone.now() + timedelta(days=days),
    )
    row.groups.set(groups)
    names = ", ".join(sorted(group.name for group in groups))
    _record(row, Kind.MADE, made_by, names)
    return row, token


@transact
def withdraw_invitation(*, invitation: Invitation, actor: User | None) -> bool:
    """Withdraw an invitation; False where it has ended already. No actor: a command's operator."""
    now = timezone.now()
    if not _open_rows(now).filter(pk=invitation.pk).update(withdrawn_at=now):
        return False
    _record(invitation, Kind.WITHDRAWN, actor)
    return True


@transact
def use_invitation(*, token: str, username: str, password_hash: str) -> User:
    """Make the account of whoever has the link; of two at once one gets it.

    Raises InvitationRefused, and IntegrityError where the name was taken meanwhile.
    """
    row, state = find_invitation(token)
    if row is None or state is not InvitationState.OPEN:
        raise InvitationRefused(state.value)
    if has_account(row.email):
        raise InvitationRefused("email_taken")
    user = User.objects.create(username=username, email=row.email, password=password_hash)
    now = timezone.now()
    if not _open_rows(now).filter(pk=row.pk).update(used_at=now, used_by=user):
        raise InvitationRefused(InvitationState.USED.value)
    user.groups.set(row.groups.all())
    _record(row, Kind.USED, user)
    return user


def has_account(email: str) -> bool:
    """Return whether an account has the address already, so that no invitation can give it."""
    return bool(email) and User.objects.filter(email__iexact=email).exists()


def find_invitation(token: str) -> tuple[Invitation | None, InvitationState]:
    """Return the invitation of a link and its state; None: there is none, as if withdrawn."""
    row = Invitation.objects.select_related("made_by").filter(digest=digest_secret(token)).first()
    return row, InvitationState.WITHDRAWN if row is None else find_invitation_state(row)


def find_invitation_state(row: Invitation) -> InvitationState:
    if row.used_at is not None:
        return InvitationState.USED
    if row.withdrawn_at is not None or (row.made_by is not None and not row.made_by.is_active):
        return InvitationState.WITHDRAWN
    return InvitationState.OPEN if row.expires_at > timezone.now() else InvitationState.EXPIRED


def _open_rows(now: datetime) -> QuerySet[Invitation]:
    return Invitation.objects.filter(used_at=None, withdrawn_at=None, expires_at__gt=now)


def _record(row: Invitation, kind: Kind, actor: User | None, note: str = "") -> None:
    decision = InvitationDecision(invitation=row, kind=kind, actor=actor, note=note)
    append_row(decision, lock_site_chain())
