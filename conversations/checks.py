"""System checks: problems are reported at start-up, with an id and what to change."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks.security import base

from conversations.agent.thinking import EFFORTS
from conversations.budgets.prices import (
    find_small_windows,
    find_unpriced_models,
    has_catalogue,
    list_enabled_models,
)
from conversations.conf import build_site_policy, conf
from conversations.context.errors import ContextError
from conversations.models.periods import ZoneUnknown, load_zone
from conversations.reductions.policy import policy_of, read_model_numbers

#: Tokens of a model's window below which there is a warning.
SMALL_WINDOW = 32_000


@register(Tags.security, deploy=True)
def check_https(**_: Any) -> list[CheckMessage]:
    """Make Django's two checks of HTTPS, which know its own middleware by name alone."""
    found: list[CheckMessage] = []
    if not settings.SECURE_HSTS_SECONDS:
        found.append(base.W004)
    if not settings.SECURE_SSL_REDIRECT:
        found.append(base.W008)
    return found


@register(Tags.security)
def check_policy(**_: Any) -> list[CheckMessage]:
    try:
        build_site_policy()
    except ContextError as error:
        return [
            Error(str(error), hint="Change the AGENTWEB_ setting it names.", id="agentweb.E001")
        ]
    return []


@register(Tags.database)
def check_thresholds(databases: Any = None, **_: Any) -> list[CheckMessage]:
    """Report models whose thresholds contradict the site's numbers; it queries the database."""
    if "default" not in (databases or ()) or not has_catalogue():
        return []
    found: list[CheckMessage] = []
    for model in sorted(list_enabled_models()):
        try:
            policy_of(model=read_model_numbers(model))
        except ContextError as error:
            hint = "Change the thresholds of the model in the admin, or the site's setting."
            found.append(Error(f"{model}: {error}", hint=hint, id="agentweb.E006"))
    return found


@register(Tags.security)
def check_caps(**_: Any) -> list[CheckMessage]:
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


@register(Tags.security)
def check_effort(**_: Any) -> list[CheckMessage]:
    if conf.effort in ("", *EFFORTS):
        return []
    return [
        Error(
            f"AGENTWEB_EFFORT is {conf.effort!r}, which is no effort.",
            hint=f"Use {', '.join(EFFORTS)}, or leave it empty.",
            id="agentweb.E005",
        )
    ]


@register(Tags.security)
def check_budgets(**_: Any) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    if conf.max_turn_micros < 0:
        found.append(Error("AGENTWEB_MAX_TURN_MICROS must not be negative.", id="agentweb.E003"))
    try:
        load_zone(conf.budget_time_zone)
    except ZoneUnknown as error:
        hint = "Change AGENTWEB_BUDGET_TIME_ZONE."
        found.append(Error(str(error), hint=hint, id="agentweb.E004"))
    return found


@register(Tags.database)
def check_prices(databases: Any = None, **_: Any) -> list[CheckMessage]:
    """Warn of enabled models without prices, whose calls are refused; it queries the database."""
    if "default" not in (databases or ()) or not has_catalogue():
        return []
    return [
        checks.Warning(
            f"The model {name} is enabled and has no price for {', '.join(kinds)}: calls of it"
            " are refused.",
            hint="Load prices with manage.py prices load, or switch the model off in the admin.",
            id="agentweb.W001",
        )
        for name, kinds in find_unpriced_models().items()
    ]


@register(Tags.database)
def check_windows(databases: Any = None, **_: Any) -> list[CheckMessage]:
    """Warn of enabled models whose window is small; it queries the database."""
    if "default" not in (databases or ()) or not has_catalogue():
        return []
    return [
        checks.Warning(
            f"The model {name} takes {window:,} tokens: below {SMALL_WINDOW:,} tools and long"
            " messages leave little room, and much is summarised or dropped.",
            hint="Offer a model with a larger window, or switch this one off in the admin.",
            id="agentweb.W002",
        )
        for name, window in find_small_windows(SMALL_WINDOW)
    ]
