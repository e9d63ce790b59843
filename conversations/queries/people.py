"""Who is there: whether the site has an administrator, and what people prefer."""

from __future__ import annotations

from conversations.models import Conversation, User
from conversations.preferences import Preferences, preferences


def has_administrator() -> bool:
    return User.objects.filter(is_superuser=True, is_active=True).exists()


def preferences_of_owner(conversation: Conversation) -> Preferences:
    """Give what the owner of a conversation prefers, where no request says who reads."""
    return preferences(conversation.owner.preferences)
