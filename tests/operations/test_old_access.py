"""Access that was ended since a backup was made, and that its restore brings back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.operations.test_backup import Site
from tests.support.environment import DATABASE

GIVEN = """
from conversations.accounts.api_tokens import make_token
from conversations.invitations.invitations import make_invitation
from conversations.models import ApiToken, User
from tests.support import shared_links, stored_turns
ada = User.objects.create_user("ada")
for name in ("report", "till"):
    make_token(owner=ada, name=name, scopes=(), days=9, peer="")
bob = User.objects.create_user("bob")
make_token(owner=bob, name="report", scopes=(), days=9, peer="")
User.objects.filter(pk=bob.pk).update(is_active=False)
make_invitation(made_by=ada)
shared_links.shared(stored_turns.played().conversation)
"""
ENDED = """
from conversations.accounts.api_tokens import revoke_token
from conversations.invitations.invitations import withdraw_invitation
from conversations.library.shared_links import revoke_link
from conversations.models import ApiToken, Invitation, SharedLink
for token in ApiToken.objects.all(): revoke_token(token=token, peer="")
for one in Invitation.objects.all(): withdraw_invitation(invitation=one, actor=one.made_by)
for one in SharedLink.objects.all():
    revoke_link(conversation=one.conversation, actor=one.conversation.owner, peer="")
"""
OPEN = """
from conversations.models import ApiToken, Invitation, SharedLink
print(ApiToken.objects.filter(revoked_at=None).count())
print(Invitation.objects.filter(withdrawn_at=None).count())
print(SharedLink.objects.filter(revoked_at=None).count())
"""


def test_what_was_ended_since_the_backup_is_told_of_or_ended_anew(
    tmp_path: Path, request: Any
) -> None:
    server = request.getfixturevalue("postgres") if DATABASE == "postgres" else None
    site, path = Site(tmp_path / "site", server, is_new=False), tmp_path / "backup.tar"
    site.execute(GIVEN)
    site.manage("backup", str(path))
    site.execute(ENDED)
    assert site.execute(OPEN).split() == ["0", "0", "0"]
    said = site.manage("restore", str(path), "--force")
    # One of them is of somebody who is inactive, and works again once they are active.
    assert "of 3 API tokens, 1 invitations and 1 links to chats, those" in said
    assert site.execute(OPEN).split() == ["3", "1", "1"]
    said = site.manage("restore", str(path), "--force", "--end-access")
    assert "Ended: 3 API tokens, 1 invitations and 1 links to chats." in said
    assert "chain intact" in said
    assert site.execute(OPEN).split() == ["0", "0", "0"]
