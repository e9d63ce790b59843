"""Links to a new password that a superuser makes for a person who cannot ask for one by mail.

Nobody sets another person's password, but whoever has such a link can: so it is on record in the
admin's log, the person sees it among the events of their account, and second factors stay.
"""

from __future__ import annotations

from django.contrib.auth.tokens import default_token_generator
from django.utils.http import urlsafe_base64_encode

from conversations.accounts.account_events import Kind, log_change, record_event
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.db import transact
from conversations.models import User

_MADE = mark_recorded(gettext_noop("Made a link to a new password"))


def may_have_reset_link(user: User) -> bool:
    """Return whether the person logs in with a password; others would get one by the link."""
    return user.is_active and user.has_usable_password()


@transact
def make_reset_link(*, user: User, actor: User, peer: str) -> dict[str, str]:
    """Record that a link is made; return the parts of its address."""
    record_event(user=user, kind=Kind.RESET_MADE, peer=peer)
    log_change(user=user, actor=actor, words=_MADE)
    uid = urlsafe_base64_encode(str(user.pk).encode())
    return {"uidb64": uid, "token": default_token_generator.make_token(user)}
