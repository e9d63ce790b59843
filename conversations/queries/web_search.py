"""Web search: the API's own tool, which nobody here can stop or ask about search by search.

What a search asks for leaves the machine, and a page or a mail may tell the model what to search
for. So it is off until a person turns it on for a conversation, and then nothing private is read
there beside it, unless that person says it may be. Where something private was read before, search
is not offered. Both are settled when a turn begins, so the definitions, and with them the prompt
cache, stay what they are for the whole of it. A model whose searches have no price is offered none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from conversations.conf import conf
from conversations.models import Conversation, ToolCall, WebSearch
from conversations.queries.branches import on_path
from conversations.queries.prices import price_list

NAME = "web_search"
#: The version that runs no code of its own beside the searches; every model that searches has it.
TYPE = "web_search_20250305"


def search_tools(conversation: Conversation) -> Iterator[Mapping[str, Any]]:
    """Give the definition of web search where the conversation has it turned on."""
    if conversation.web_search and is_search_possible(conversation):
        yield definition()


def is_search_possible(conversation: Conversation) -> bool:
    """Say whether this site and this model have web search at all."""
    at = timezone.now()
    return (
        conf.web_search
        and conf.web_search_uses > 0
        and price_list(conversation.model, at).has_search
    )


def has_read_privately(conversation: Conversation) -> bool:
    """Say whether a tool gave something private on the shown path."""
    return not conversation._state.adding and _private_calls(conversation).exists()


def _private_calls(conversation: Conversation) -> QuerySet[ToolCall]:
    return ToolCall.objects.filter(on_path("turn", conversation), is_private=True)


def excludes_private(conversation: Conversation) -> bool:
    """Say whether the conversation's searches are such that nothing private is read beside them."""
    return conversation.web_search == WebSearch.ALONE


def definition() -> dict[str, Any]:
    tool: dict[str, Any] = {"type": TYPE, "name": NAME, "max_uses": conf.web_search_uses}
    if conf.web_search_allowed:
        tool["allowed_domains"] = list(conf.web_search_allowed)
    elif conf.web_search_blocked:
        tool["blocked_domains"] = list(conf.web_search_blocked)
    if conf.web_search_country:
        tool["user_location"] = {"type": "approximate", "country": conf.web_search_country}
    return tool
