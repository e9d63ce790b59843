"""Searches of the web: who is offered them, and what they exclude."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.models import (
    Conversation,
    ModelPrice,
    ToolCall,
    ToolRule,
    WebSearch,
)
from conversations.reductions.conversation_settings import read_job_facts
from conversations.toolbox.tool_access import choose_web_search
from conversations.toolbox.toolset import build_toolset, offers_search
from conversations.toolbox.web_search import build_definition
from tests.support import stored_turns
from tests.support.stored_turns import Played

pytestmark = pytest.mark.django_db


@pytest.fixture
def played() -> Played:
    return stored_turns.played()


def chosen(played: Played, choice: str) -> Conversation:
    choose_web_search(conversation_id=played.conversation.pk, choice=choice)
    return Conversation.objects.get(pk=played.conversation.pk)


def private(conversation: Conversation) -> list[str]:
    return [tool.name for tool in build_toolset(conversation).tools.values() if tool.is_private]


def read_privately(played: Played) -> None:
    ToolCall.objects.filter(turn=played.turn).update(is_private=True)


def test_a_new_conversation_searches_nothing(played: Played) -> None:
    assert played.conversation.web_search == WebSearch.OFF
    assert build_toolset(played.conversation).server_tools == ()
    assert private(played.conversation)


def test_alone_it_is_offered_and_what_is_private_is_refused_with_the_reason(
    played: Played,
) -> None:
    names = private(played.conversation)
    found = build_toolset(chosen(played, WebSearch.ALONE))
    assert found.definitions()[-1] == {
        "type": "web_search_20250305",
        "name": "web_search",
        "max_uses": 5,
    }
    assert not any(tool.is_private for tool in found.tools.values())
    assert all("the web is searched here" in found.refused[name] for name in names)


def test_alone_it_is_not_offered_where_something_private_was_read(played: Played) -> None:
    before = private(played.conversation)
    read_privately(played)
    conversation = chosen(played, WebSearch.ALONE)
    found = build_toolset(conversation)
    assert found.server_tools == ()
    assert not offers_search(conversation)
    assert "something private was read here" in found.refused["web_search"]
    assert private(conversation) == before


def test_what_was_read_on_another_branch_speaks_against_nothing(played: Played) -> None:
    read_privately(played)
    Conversation.objects.filter(pk=played.conversation.pk).update(leaf=0, tip=0)
    conversation = chosen(played, WebSearch.ALONE)
    assert build_toolset(conversation).server_tools
    assert offers_search(conversation)


def test_beside_private_data_it_is_offered_with_everything(played: Played) -> None:
    before = private(played.conversation)
    read_privately(played)
    conversation = chosen(played, WebSearch.BESIDE)
    assert build_toolset(conversation).server_tools
    assert private(conversation) == before


@pytest.mark.parametrize("choice", WebSearch.values)
def test_the_definitions_have_the_same_bytes_at_every_look(played: Played, choice: str) -> None:
    conversation = chosen(played, choice)
    assert build_toolset(conversation).definitions() == build_toolset(conversation).definitions()


@pytest.mark.parametrize("setting", [("WEB_SEARCH", False), ("WEB_SEARCH_USES", 0)])
def test_a_site_can_have_none(played: Played, settings: Any, setting: tuple[str, Any]) -> None:
    setattr(settings, f"AGENTWEB_{setting[0]}", setting[1])
    conversation = chosen(played, WebSearch.ALONE)
    assert build_toolset(conversation).server_tools == ()
    assert private(conversation)


def test_a_model_whose_searches_have_no_price_has_none(played: Played) -> None:
    ModelPrice.objects.filter(model_id=stored_turns.MODEL, kind="web_search").delete()
    assert build_toolset(chosen(played, WebSearch.BESIDE)).server_tools == ()


def test_a_rule_takes_it_away_and_gives_the_private_tools_back(played: Played) -> None:
    ToolRule.objects.create(tool="web_search", is_allowed=False)
    conversation = chosen(played, WebSearch.ALONE)
    assert build_toolset(conversation).server_tools == ()
    assert private(conversation)


def test_a_choice_there_is_not_is_none(played: Played) -> None:
    with pytest.raises(ValueError, match="everything"):
        choose_web_search(conversation_id=played.conversation.pk, choice="everything")


def test_domains_and_a_country_are_the_site_s(settings: Any) -> None:
    settings.AGENTWEB_WEB_SEARCH_BLOCKED = ("bad.example",)
    settings.AGENTWEB_WEB_SEARCH_COUNTRY = "DE"
    settings.AGENTWEB_WEB_SEARCH_USES = 2
    assert build_definition() == {
        "type": "web_search_20250305",
        "name": "web_search",
        "max_uses": 2,
        "blocked_domains": ["bad.example"],
        "user_location": {"type": "approximate", "country": "DE"},
    }
    settings.AGENTWEB_WEB_SEARCH_ALLOWED = ("good.example",)
    assert "blocked_domains" not in build_definition()


def test_the_turn_is_run_with_it(played: Played) -> None:
    conversation = chosen(played, WebSearch.BESIDE)
    assert read_job_facts(conversation.pk).tools.server_tools == (build_definition(),)
