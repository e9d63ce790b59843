"""Access that a restored backup brings back: what was ended since it.

Which of the tokens, invitations and links were ended is not in the backup, so an operator decides
for all of them. Sessions are never in a backup (`archive.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q
from django.utils import timezone

from conversations.accounts.api_tokens import revoke_token
from conversations.invitations.invitations import withdraw_invitation
from conversations.library.shared_links import revoke_link
from conversations.models import ApiToken, Invitation, SharedLink


@dataclass(frozen=True, slots=True)
class OldAccess:
    """What works by what the database says."""

    tokens: tuple[ApiToken, ...]
    invitations: tuple[Invitation, ...]
    #: Links to chats, those to what is in the trash too: it may come back.
    links: tuple[SharedLink, ...]

    def __str__(self) -> str:
        return (
            f"{len(self.tokens)} API tokens, {len(self.invitations)} invitations and"
            f" {len(self.links)} links to chats"
        )

    def __bool__(self) -> bool:
        return bool(self.tokens or self.invitations or self.links)


def list_old_access() -> OldAccess:
    now = timezone.now()
    tokens = ApiToken.objects.filter(revoked_at=None, owner__is_active=True, expires_at__gt=now)
    invitations = Invitation.objects.filter(used_at=None, withdrawn_at=None, expires_at__gt=now)
    links = SharedLink.objects.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)
    return OldAccess(tuple(tokens), tuple(invitations), tuple(links.select_related("conversation")))


def end_old_access() -> OldAccess:
    """End all of it, on record; return what it was."""
    found = list_old_access()
    for token in found.tokens:
        revoke_token(token=token, peer="")
    for invitation in found.invitations:
        withdraw_invitation(invitation=invitation, actor=None)
    for link in found.links:
        revoke_link(conversation=link.conversation, actor=None, peer="")
    return found
