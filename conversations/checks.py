"""System checks: what is wrong is said at start-up, with an id and what to change."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register

from conversations.conf import conf, site_policy
from conversations.context.errors import ContextError


@register(Tags.security)
def policy_is_valid(**_: Any) -> list[CheckMessage]:
    try:
        site_policy()
    except ContextError as error:
        return [
            Error(str(error), hint="Change the AGENTWEB_ setting it names.", id="agentweb.E001")
        ]
    return []


@register(Tags.security)
def caps_are_positive(**_: Any) -> list[CheckMessage]:
    names = (
        "max_output_tokens",
        "max_rounds",
        "max_tool_calls",
        "max_turn_seconds",
        "max_attempts",
    )
    return [
        Error(f"AGENTWEB_{name.upper()} must be at least 1.", id="agentweb.E002")
        for name in names
        if getattr(conf, name) < 1
    ]
