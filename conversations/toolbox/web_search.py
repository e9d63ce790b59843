"""Web search: a tool that the API runs, so single searches can be neither stopped nor approved.

A search query leaves the site, and a page or a mail may instruct the model what to search for
(prompt injection). So search is off until a person turns it on for a conversation, and then tools
that read private data are denied unless that person allows both. Where private data was read
before, search is not offered. Both are decided when a turn begins, so the tool definitions, and
with them the prompt cache, stay the same for the whole turn. A model without a price for searches
does not get the tool.

Imported results have no row that says which tool returned them: they count as private.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils import timezone

from conversations.budgets.prices import load_price_list
from conversations.conf import conf
from conversations.log.tree import build_path_condition
from conversations.models import Conversation, Message, ToolCall, WebSearch

NAME = "web_search"
#: The tool version that runs no code along with searches; every model with web search has it.
TYPE = "web_search_20250305"
#: The name for imported results in a list of sources.
IMPORTED = "imported results"


def list_search_tools(conversation: Conversation) -> Iterator[Mapping[str, Any]]:
    """Yield the definition of web search where the conversation has it turned on."""
    if conversation.web_search and is_search_possible(conversation):
        yield build_definition()


def is_search_possible(conversation: Conversation) -> bool:
    """Return whether this site and this model have web search at all."""
    at = timezone.now()
    return (
        conf.web_search
        and conf.web_search_uses > 0
        and load_price_list(conversation.model, at).has_search
    )


def has_read_privately(conversation: Conversation) -> bool:
    """Return whether a tool returned private data on the shown path."""
    return not conversation._state.adding and bool(list_private_sources(conversation))


def list_private_sources(conversation: Conversation) -> tuple[str, ...]:
    """Return the names of tools that returned private data on the shown path, in order."""
    path = build_path_condition("turn", conversation)
    calls = ToolCall.objects.filter(path, is_private=True).order_by("pk")
    imported = Message.objects.filter(path, kind="results", turn__tool_calls=None)
    before = (IMPORTED,) if imported.exists() else ()
    return (*before, *dict.fromkeys(calls.values_list("name", flat=True)))


def excludes_private(conversation: Conversation) -> bool:
    """Return whether the conversation allows search only without private tools."""
    return conversation.web_search == WebSearch.ALONE


def build_definition() -> dict[str, Any]:
    tool: dict[str, Any] = {"type": TYPE, "name": NAME, "max_uses": conf.web_search_uses}
    if conf.web_search_allowed:
        tool["allowed_domains"] = list(conf.web_search_allowed)
    elif conf.web_search_blocked:
        tool["blocked_domains"] = list(conf.web_search_blocked)
    if conf.web_search_country:
        tool["user_location"] = {"type": "approximate", "country": conf.web_search_country}
    return tool
