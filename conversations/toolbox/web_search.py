"""Web search: the API's own tool, which nobody here can stop or ask about search by search.

What a search asks for leaves the machine, and a page or a mail may tell the model what to search
for. So it is off until a person turns it on for a conversation, and then nothing private is read
there beside it, unless that person says it may be. Where something private was read before, search
is not offered. Both are settled when a turn begins, so the definitions, and with them the prompt
cache, stay what they are for the whole of it. A model whose searches have no price is offered none.

What came with an import has no row that says which tool gave it: it counts as private.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils import timezone

from conversations.budgets.prices import price_list
from conversations.conf import conf
from conversations.log.tree import on_path
from conversations.models import Conversation, Message, ToolCall, WebSearch

NAME = "web_search"
#: The version that runs no code of its own beside the searches; every model that searches has it.
TYPE = "web_search_20250305"
#: What results of an import are called where sources are named.
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
        and price_list(conversation.model, at).has_search
    )


def has_read_privately(conversation: Conversation) -> bool:
    """Return whether a tool gave something private on the shown path."""
    return not conversation._state.adding and bool(list_private_sources(conversation))


def list_private_sources(conversation: Conversation) -> tuple[str, ...]:
    """Name what gave something private on the shown path, in its order."""
    path = on_path("turn", conversation)
    calls = ToolCall.objects.filter(path, is_private=True).order_by("pk")
    imported = Message.objects.filter(path, kind="results", turn__tool_calls=None)
    before = (IMPORTED,) if imported.exists() else ()
    return (*before, *dict.fromkeys(calls.values_list("name", flat=True)))


def excludes_private(conversation: Conversation) -> bool:
    """Say whether the conversation's searches are such that nothing private is read beside them."""
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
