"""People made by commands."""

from __future__ import annotations

from django.db import transaction

from conversations.models import User


@transaction.atomic
def keep_administrator(*, username: str, password: str) -> User:
    """Make an administrator, or give an existing one this password."""
    user = User.objects.filter(username=username).first() or User(username=username)
    user.is_staff = user.is_superuser = user.is_active = True
    user.set_password(password)
    user.save()
    return user
