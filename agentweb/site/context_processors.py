"""Template context of every page: real model or emulator, the person's preferences, the token."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest

from conversations.accounts.preferences import read_preferences
from conversations.live.socket_access import socket_token


def site(request: HttpRequest) -> dict[str, object]:
    stored = getattr(getattr(request, "user", None), "preferences", None)
    session = getattr(request, "session", None)
    return {
        "is_emulated": not settings.ANTHROPIC_API_KEY,
        "preferences": read_preferences(stored),
        "socket_token": socket_token(getattr(session, "session_key", None)),
        "impersonation": getattr(request, "impersonation", None),
    }
