"""Tokens of the API for tests, of people who may have none, too."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.utils import timezone

from conversations.accounts.api_tokens import PREFIX
from conversations.models import ApiToken, User


def token_of(user: User, *scopes: str, **fields: Any) -> str:
    """Store a token with scopes, whatever the person may see; return its secret."""
    secret = f"{PREFIX}{uuid4().hex}"
    digest = hashlib.sha256(secret.encode()).hexdigest()
    usual = {"name": "x", "expires_at": timezone.now() + timedelta(days=1)}
    ApiToken.objects.create(owner=user, digest=digest, scopes=",".join(scopes), **usual | fields)
    return secret
