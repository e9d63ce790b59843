"""System checks: problems are reported at start-up, with an id and what to change."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any, get_type_hints

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
from conversations.conf import PREFIX, Conf, build_site_policy, conf
from conversations.context.errors import ContextError
from conversations.context.policy.policy import PRESETS
from conversations.models.periods import ZoneUnknown, load_zone
from conversations.reductions.policy import policy_of, read_model_numbers
from conversations.toolbox.web_search import NAME as SEARCH
from tools.framework.registry import TOOLS

#: Tokens of a model's window below which there is a warning.
SMALL_WINDOW = 32_000
#: Numbers of `conf` with which 0 would leave nothing that works; any other may be 0.
AT_LEAST_ONE = frozenset({
    "attempt_seconds", "first_event_seconds", "lease_seconds", "mailed_link_hours",
    "max_attempts", "max_live_turns", "max_output_tokens", "max_parallel_tools",
    "max_prompt_chars", "max_rounds", "max_sockets_per_user", "max_tool_bytes",
    "max_tool_calls", "max_tool_seconds", "max_turn_seconds", "process_turns",
    "read_timeout_seconds",
})  # fmt: skip
#: Who may open links to chats (`library/access.py`).
SHARING = ("off", "people", "public")
#: Highest numbers, by the unit that a name ends with: a hundred years, and the whole.
HIGHEST = {
    "ms": 3_153_600_000_000, "seconds": 3_153_600_000, "minutes": 52_560_000, "hours": 876_000,
    "days": 36_500, "percent": 100,
}  # fmt: skip


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
def check_numbers(**_: Any) -> list[CheckMessage]:
    """Check that every number of `conf` means something and that dates can be computed with it."""
    found: list[CheckMessage] = []
    for name in (name for name, kind in get_type_hints(Conf).items() if kind is int):
        value, lowest = getattr(conf, name), int(name in AT_LEAST_ONE)
        highest = HIGHEST.get(name.rpartition("_")[2])
        if value < lowest or (highest is not None and value > highest):
            hint = f"Use {lowest} or more." if highest is None else f"Use {lowest} to {highest:,}."
            text = f"{PREFIX}{name.upper()} is {value:,}."
            found.append(Error(text, hint=hint, id="agentweb.E002"))
    return found


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
def check_offered_policies(**_: Any) -> list[CheckMessage]:
    """Refuse a preset that there is none of: people would be offered fewer, or none at all."""
    unknown = [name for name in conf.offered_policies if name not in PRESETS]
    hint = f"Use {', '.join(PRESETS)}, or leave it empty."
    return [
        Error(
            f"AGENTWEB_OFFERED_POLICIES names {name}, which is no preset.",
            hint=hint,
            id="agentweb.E003",
        )
        for name in unknown
    ]


@register(Tags.compatibility)
def check_disabled_tools(**_: Any) -> list[CheckMessage]:
    """Warn of a name in AGENTWEB_DISABLED_TOOLS that switches nothing off.

    The names of tools of MCP servers are in the database, and a server may have them later.
    """
    known = (*TOOLS, SEARCH)
    found: list[CheckMessage] = []
    for name in conf.disabled_tools:
        if name not in known and not re.fullmatch("mcp__.+__.+", name):
            meant = get_close_matches(name, known, n=1)
            hint = f"Did you mean {meant[0]}?" if meant else f"Use {', '.join(sorted(known))}."
            text = f"AGENTWEB_DISABLED_TOOLS names {name}, which is no tool: nothing is off by it."
            found.append(checks.Warning(text, hint=hint, id="agentweb.W003"))
    return found


@register(Tags.security)
def check_search_country(**_: Any) -> list[CheckMessage]:
    """Refuse what the API refuses, with every answer that may search."""
    if re.fullmatch("([A-Za-z]{2})?", conf.web_search_country):
        return []
    text = f"AGENTWEB_WEB_SEARCH_COUNTRY is {conf.web_search_country!r}, which is no country."
    return [Error(text, hint="Use two letters, such as DE.", id="agentweb.E007")]


@register(Tags.security)
def check_sharing(**_: Any) -> list[CheckMessage]:
    """Refuse a word that means nothing: links would work for nobody, and nobody would know why."""
    if conf.sharing in SHARING:
        return []
    text = f"AGENTWEB_SHARING is {conf.sharing!r}, which says nobody."
    return [Error(text, hint=f"Use {', '.join(SHARING)}.", id="agentweb.E008")]


@register(Tags.security)
def check_time_zone(**_: Any) -> list[CheckMessage]:
    try:
        load_zone(conf.budget_time_zone)
    except ZoneUnknown as error:
        hint = "Change AGENTWEB_BUDGET_TIME_ZONE."
        return [Error(str(error), hint=hint, id="agentweb.E004")]
    return []


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
