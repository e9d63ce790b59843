"""What every page knows: whether a real model answers, and what the person prefers."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest

from conversations.preferences import preferences


def site(request: HttpRequest) -> dict[str, object]:
    stored = getattr(getattr(request, "user", None), "preferences", None)
    return {
        "is_emulated": not settings.ANTHROPIC_API_KEY,
        "preferences": preferences(stored),
    }
