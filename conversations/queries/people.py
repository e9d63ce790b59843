"""Who is there: sessions that still hold, and whether the site has an administrator."""

from __future__ import annotations

from importlib import import_module

from django.conf import settings
from django.contrib.auth import SESSION_KEY

from conversations.models import User


def is_logged_in(session_key: str | None, user_id: int) -> bool:
    """Say whether the session still belongs to the user and the user is still active."""
    if not session_key:
        return False
    session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    is_same = session.get(SESSION_KEY) == str(user_id)
    return is_same and User.objects.filter(pk=user_id, is_active=True).exists()


def has_administrator() -> bool:
    return User.objects.filter(is_superuser=True, is_active=True).exists()
