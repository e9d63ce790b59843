"""What every page knows: whether a real model answers."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest


def site(_: HttpRequest) -> dict[str, object]:
    return {"is_emulated": not settings.ANTHROPIC_API_KEY}
