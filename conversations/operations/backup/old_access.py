"""Access that a restored backup brings back: tokens and invitations that were ended since it.

Which of them were ended is not in the backup, so an operator decides for all of them. Sessions are
never in a backup (`archive.py`); links to chats are listed in `library/shared_links.py`.
"""

from __future__ import annotations

from django.utils import timezone

from conversations.accounts.api_tokens import revoke_token
from conversations.invitations.invitations import withdraw_invitation
from conversations.models import ApiToken, Invitation


def list_old_access() -> tuple[list[ApiToken], list[Invitation]]:
    """Return the API tokens and the invitations that have not ended by what the database says.

    Tokens of people who are inactive are among them: they work again once these are active.
    """
    works = {"expires_at__gt": timezone.now()}
    tokens = ApiToken.objects.filter(revoked_at=None, **works)
    invitations = Invitation.objects.filter(used_at=None, withdrawn_at=None, **works)
    return list(tokens), list(invitations)


def end_old_access() -> tuple[list[ApiToken], list[Invitation]]:
    """Revoke the tokens and withdraw the invitations, on record; return them."""
    tokens, invitations = list_old_access()
    for token in tokens:
        revoke_token(token=token, peer="")
    for invitation in invitations:
        withdraw_invitation(invitation=invitation, actor=None)
    return tokens, invitations
