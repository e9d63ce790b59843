"""Web search: a tool that the API runs, so single searches can be neither stopped nor approved.

A search query leaves the site, and a page or a mail may instruct the model what to search for
(prompt injection). So search is off until a person turns it on for a conversation, and then tools
that read private data are denied unless that person allows both. Where private data was read
before, search is not offered. Both are decided when a turn begins, so the tool definitions, and
with them the prompt cache, stay the same for the whole turn, unless what is left of a budget allows
one search alone from some call on. A model without a price for searches does not get the tool, nor
does a conversation in which nothing leaves unasked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils import timezone

from conversations.budgets.prices import load_price_list
from conversations.conf import conf
from conversations.models import Conversation, WebSearch
from conversations.toolbox.egress import asks_before_egress
from conversations.toolbox.sources import list_private_sources

NAME = "web_search"
#: The tool version that runs no code along with searches; every model with web search has it.
TYPE = "web_search_20250305"


def list_search_tools(conversation: Conversation) -> Iterator[Mapping[str, Any]]:
    """Yield the definition of web search where the conversation has it turned on."""
    if not conversation.web_search or asks_before_egress(conversation):
        return
    if is_search_possible(conversation):
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
    """Return whether something private was attached or read on the shown path."""
    return not conversation._state.adding and bool(list_private_sources(conversation))


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
