"""Who is there: sessions that still hold, and whether the site has an administrator."""

from __future__ import annotations

from importlib import import_module

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.utils.crypto import constant_time_compare

from conversations.models import Conversation, User
from conversations.preferences import Preferences, preferences


def is_logged_in(session_key: str | None, user_id: int) -> bool:
    """Say whether the session still belongs to the user and the user is still active."""
    if not session_key:
        return False
    session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    if session.get(SESSION_KEY) != str(user_id):
        return False
    user = User.objects.filter(pk=user_id, is_active=True).first()
    return user is not None and _is_of_this_password(session.get(HASH_SESSION_KEY, ""), user)


def _is_of_this_password(found: str, user: User) -> bool:
    """Say whether a session was begun with the present password: a new one ends all others."""
    known = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    return any(constant_time_compare(found, each) for each in known)


def has_administrator() -> bool:
    return User.objects.filter(is_superuser=True, is_active=True).exists()


def preferences_of_owner(conversation: Conversation) -> Preferences:
    """Give what the owner of a conversation prefers, where no request says who reads."""
    rows = User.objects.filter(pk=conversation.owner_id)
    return preferences(rows.values_list("preferences", flat=True).first())
