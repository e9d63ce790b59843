"""People: administrators made by commands, sessions, and stored preferences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from conversations.accounts.preferences import Preferences, merge_preferences, read_preferences
from conversations.models import Conversation, User


@transaction.atomic
def save_administrator(*, username: str, password: str) -> User:
    """Create an administrator, or set an existing one's password."""
    user = User.objects.filter(username=username).first() or User(username=username)
    user.is_staff = user.is_superuser = user.is_active = True
    user.set_password(password)
    user.save()
    return user


@transaction.atomic
def save_preferences(*, user_id: int, changes: Mapping[str, Any]) -> None:
    """Change some preferences and leave the others as they are; raises PreferenceError."""
    user = User.objects.select_for_update().only("preferences").get(pk=user_id)
    user.preferences = merge_preferences(user.preferences, changes)
    user.save(update_fields=["preferences"])


@transaction.atomic
def end_sessions(*, user_id: int) -> User:
    """End all sessions of a person; the view stores the new hash in the current one."""
    user = User.objects.select_for_update().get(pk=user_id)
    user.session_epoch += 1
    user.save(update_fields=["session_epoch"])
    return user


def has_administrator() -> bool:
    return User.objects.filter(is_superuser=True, is_active=True).exists()


def read_owner_preferences(conversation: Conversation) -> Preferences:
    """Return the preferences of a conversation's owner, for rendering without a request."""
    return read_preferences(conversation.owner.preferences)
