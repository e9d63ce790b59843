"""Checks of the model: the key, whether the API accepts it, the catalogue and its prices."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from django.conf import settings

from agentweb.doctor.report_lines import Line, failed, ok, warn
from agentweb.serving.startup import list_missing_models
from conversations.agent.ports import ModelFailed
from conversations.budgets.prices import find_unpriced_models, list_enabled_models
from conversations.conf import conf

#: Seconds that the API may take to list its models.
PATIENCE = 15


def check_key() -> Iterator[Line]:
    value = settings.ANTHROPIC_API_KEY
    if not value and not settings.ANTHROPIC_BASE_URL:
        text = "none: the built-in emulator answers, and every page says so"
        yield warn("ANTHROPIC_API_KEY", text, "Set it to talk to a model.")
    elif value != value.strip() or not (value.isascii() and value.isprintable()):
        text = "it holds blanks or characters that no key has"
        yield failed("ANTHROPIC_API_KEY", text, "Copy it again, without quotes and line ends.")
    elif settings.ANTHROPIC_BASE_URL:
        yield ok("ANTHROPIC_BASE_URL", "set: another address than the API's own is asked")
    else:
        yield ok("ANTHROPIC_API_KEY", "set; --online tries it")


def check_catalogue() -> Iterator[Line]:
    enabled, unpriced = list_enabled_models(), find_unpriced_models()
    for name, kinds in unpriced.items():
        text = f"{name} is enabled and has no price for {', '.join(kinds)}"
        yield warn("prices", text, "manage.py prices load FILE, or switch the model off.")
    for setting, name in list_missing_models():
        say = failed if setting == "AGENTWEB_MODEL" else warn
        text = f"{name} is not an enabled model of the catalogue"
        yield say(setting, text, "Enable it in the admin, or name another.")
    if enabled and not unpriced:
        yield ok("prices", f"{len(enabled)} models, all with prices")


def check_online() -> Iterator[Line]:
    """Request the API's list of models, which is free."""
    if not settings.ANTHROPIC_API_KEY:
        yield warn("API", "not asked: there is no key", "Set ANTHROPIC_API_KEY.")
        return
    try:
        names = asyncio.run(_names())
    except ModelFailed as error:
        yield failed("API", error.text, "Check the key, its limits and the network.")
        return
    yield ok("API", f"it takes the key and has {len(names)} models")
    if conf.model not in names:
        text = f"the API does not name {conf.model}"
        yield failed("AGENTWEB_MODEL", text, f"Use one of: {', '.join(sorted(names)[:8])}.")


async def _names() -> set[str]:
    from conversations.claude.client import Claude, Deadlines

    claude = Claude(
        api_key=settings.ANTHROPIC_API_KEY,
        base_url=settings.ANTHROPIC_BASE_URL,
        deadlines=Deadlines(first_event=PATIENCE, attempt=PATIENCE),
    )
    try:
        return {model.id for model in await claude.models()}
    finally:
        await claude.close()


CHECKS = (check_key, check_catalogue)
