"""People: administrators made by commands, new passwords, stored preferences, e-mail addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core import signing
from django.core.exceptions import PermissionDenied

from conversations.accounts.account_events import Kind, record_event
from conversations.accounts.preferences import Preferences, merge_preferences, read_preferences
from conversations.conf import conf
from conversations.db import transact
from conversations.models import Conversation, User

_EMAIL_SALT = "agentweb.email_address"


@transact
def save_administrator(*, username: str, password: str) -> User:
    """Create an administrator, or set an existing one's password."""
    user = User.objects.filter(username=username).first() or User(username=username)
    user.is_staff = user.is_superuser = user.is_active = True
    user.set_password(password)
    user.save()
    return user


@transact
def save_password(*, user: User, kind: Kind, peer: str) -> None:
    """Store the password that was set on the person, and record it; nothing else is written.

    The person may have been read long before, so what others have changed meanwhile stays. Raises
    PermissionDenied for one who is not active any more.
    """
    if not User.objects.select_for_update().only("is_active").get(pk=user.pk).is_active:
        raise PermissionDenied("the account was closed")
    user.save(update_fields=["password"])
    record_event(user=user, kind=kind, peer=peer)


@transact
def save_preferences(*, user_id: int, changes: Mapping[str, Any]) -> None:
    """Change some preferences and leave the others as they are; raises PreferenceError."""
    user = User.objects.select_for_update().only("preferences").get(pk=user_id)
    user.preferences = merge_preferences(user.preferences, changes)
    user.save(update_fields=["preferences"])


def make_email_token(user: User, address: str) -> str:
    """Return the token of a link that proves an address; it ends with the present address."""
    return signing.dumps([user.pk, user.email, address], salt=_EMAIL_SALT)


def read_email_token(user: User, token: str) -> str:
    """Return the address that the person proved; "" if the token is not theirs, or too old."""
    try:
        age = conf.mailed_link_hours * 3_600
        owner_id, present, address = signing.loads(token, salt=_EMAIL_SALT, max_age=age)
    except signing.BadSignature:
        return ""
    return str(address) if (owner_id, present) == (user.pk, user.email) else ""


@transact
def change_email(*, user_id: int, address: str, peer: str) -> None:
    """Store a proven address; the old one is told."""
    user = User.objects.select_for_update().get(pk=user_id)
    record_event(user=user, kind=Kind.EMAIL_CHANGED, peer=peer)
    User.objects.filter(pk=user_id).update(email=address)


def find_person(username: str) -> User | None:
    return User.objects.filter(username=username).first()


def has_administrator() -> bool:
    return User.objects.filter(is_superuser=True, is_active=True).exists()


def read_owner_preferences(conversation: Conversation) -> Preferences:
    """Return the preferences of a conversation's owner, for rendering without a request."""
    return read_preferences(conversation.owner.preferences)
