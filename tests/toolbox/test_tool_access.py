"""Who has which tool: the site, groups, what is set up, and what a person switched off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError

from conversations.models import Conversation, ToolRule, ToolSwitch
from conversations.reductions.conversation_settings import read_job_facts
from conversations.reductions.policy import effective_policy
from conversations.toolbox import toolset as toolsets
from conversations.toolbox.tool_access import switch_tools
from conversations.toolbox.toolset import build_toolset, list_tool_statuses
from conversations.turns.forks import fork_conversation
from tests.support import stored_turns
from tests.support.stored_turns import Played
from tools.framework.registry import TOOLS
from tools.framework.toolset import Supply

pytestmark = pytest.mark.django_db
SEARCH = {"type": "web_search_20260209", "name": "web_search"}


@pytest.fixture(autouse=True)
def only_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the tools of this code, for a person who has what they need."""
    monkeypatch.setattr(toolsets, "NEEDS", dict.fromkeys(toolsets.NEEDS, lambda _: True))
    for name in ("SOURCES", "SERVER_TOOLS"):
        monkeypatch.setattr(toolsets, name, ())


@pytest.fixture
def played() -> Played:
    return stored_turns.played()


def names(conversation: Conversation) -> set[str]:
    return set(build_toolset(conversation).tools)


def rule(tool: str, group: Group | None = None, *, is_allowed: bool = False) -> ToolRule:
    found = ToolRule(tool=tool, group=group, is_allowed=is_allowed)
    found.full_clean()
    found.save()
    return found


def bars(conversation: Conversation) -> dict[str, str]:
    return {
        each.name: each.denial
        for each in list_tool_statuses(conversation)
        if each.denial is not None
    }


def test_without_a_rule_every_tool_is_had_in_the_order_of_the_registry(played: Played) -> None:
    assert list(build_toolset(played.conversation).tools) == list(TOOLS)
    assert build_toolset(played.conversation).refused == {}


def test_the_site_s_setting_is_above_every_rule(played: Played, settings: Any) -> None:
    settings.AGENTWEB_DISABLED_TOOLS = ("fetch_url",)
    rule("fetch_url", is_allowed=True)
    assert bars(played.conversation) == {"fetch_url": "site"}


def test_a_rule_of_the_groups_counts_before_the_site_s_and_the_one_that_allows_wins(
    played: Played,
) -> None:
    first, second = (Group.objects.create(name=name) for name in ("first", "second"))
    rule("fetch_url")
    assert bars(played.conversation) == {"fetch_url": "rule"}
    rule("fetch_url", first, is_allowed=True)
    assert "fetch_url" not in names(played.conversation)
    played.user.groups.add(first)
    assert "fetch_url" in names(played.conversation)
    rule("read_file", first)
    assert bars(played.conversation) == {"read_file": "rule"}
    played.user.groups.add(second)
    rule("read_file", second, is_allowed=True)
    assert bars(played.conversation) == {}
    # Whichever rule comes last.
    rule("write_file", first, is_allowed=True)
    rule("write_file", second)
    assert bars(played.conversation) == {}


@pytest.mark.parametrize("group", [None, "staff"])
def test_there_is_one_rule_for_a_tool_and_a_group(group: str | None) -> None:
    made = Group.objects.create(name=group) if group else None
    rule("fetch_url", made)
    with pytest.raises(ValidationError):
        rule("fetch_url", made, is_allowed=True)


@pytest.mark.parametrize("name", ["", "a b", "a\n", "é", "x" * 129])
def test_a_rule_names_a_tool_as_the_model_calls_it(name: str) -> None:
    with pytest.raises(ValidationError):
        rule(name)


def test_what_a_person_switches_off_is_off_in_that_conversation_alone(played: Played) -> None:
    conversation = played.conversation
    switch_tools(conversation_id=conversation.pk, on=[], off=["fetch_url", "recall"])
    switch_tools(conversation_id=conversation.pk, on=["recall"], off=["fetch_url", "read_file"])
    assert bars(conversation) == {"fetch_url": "chat", "read_file": "chat"}
    assert bars(stored_turns.played().conversation) == {}
    # A new conversation has nothing switched off.
    assert bars(Conversation(owner=played.user)) == {}


def test_a_fork_has_what_its_origin_had(played: Played) -> None:
    switch_tools(conversation_id=played.conversation.pk, on=[], off=["fetch_url"])
    turn = played.conversation.turns.get()
    assert bars(fork_conversation(turn=turn)) == {"fetch_url": "chat"}
    assert ToolSwitch.objects.count() == 2


def test_a_turn_is_told_what_it_has_and_answers_what_it_has_not(played: Played) -> None:
    switch_tools(conversation_id=played.conversation.pk, on=[], off=["fetch_url"])
    facts = read_job_facts(played.conversation.pk)
    told = [each["name"] for each in facts.tools.definitions()]
    assert told == [name for name in TOOLS if name != "fetch_url"]
    assert facts.tools.refused == {
        "fetch_url": "the person has switched it off for this conversation."
    }
    # The rule for results of earlier calls stays.
    assert f"fetch_url={TOOLS['fetch_url'].results}" in facts.policy.tool_policies


def test_a_tool_that_needs_something_is_there_for_those_who_have_it(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    needy = replace(TOOLS["current_time"], name="read_mail", needs="post", results="verbatim")
    monkeypatch.setitem(TOOLS, "read_mail", needy)
    monkeypatch.setitem(toolsets.NEEDS, "post", lambda row: row.title == "with post")
    assert bars(played.conversation) == {"read_mail": "need"}
    assert "read_mail" in names(Conversation(owner=played.user, title="with post"))


def test_tools_of_other_sources_come_behind_by_name_and_never_instead_of_ours(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mine(conversation: Conversation) -> Supply:
        assert conversation.owner_id == played.user.pk
        names = ("z__last", "b__first", "recall")
        own = [replace(TOOLS["current_time"], name=name, results="verbatim") for name in names]
        return Supply(tuple(own), {"a__gone": "it went away."})

    def served(_: Conversation) -> Iterable[Mapping[str, Any]]:
        return (SEARCH,)

    monkeypatch.setattr(toolsets, "SOURCES", (mine,))
    monkeypatch.setattr(toolsets, "SERVER_TOOLS", (served,))
    found = build_toolset(played.conversation)
    assert list(found.tools) == [*TOOLS, "b__first", "z__last"]
    assert found.refused == {"a__gone": "it went away."}
    assert found.tools["recall"].description == TOOLS["recall"].description
    assert found.definitions()[-1] == SEARCH
    assert "z__last=verbatim" in effective_policy(played.conversation).tool_policies
    rule("b__first")
    rule("web_search")
    after = build_toolset(played.conversation)
    assert list(after.tools) == [*TOOLS, "z__last"]
    assert after.server_tools == ()


def test_no_tool_has_more_than_the_site_allows(played: Played, settings: Any) -> None:
    settings.AGENTWEB_MAX_TOOL_SECONDS, settings.AGENTWEB_MAX_TOOL_BYTES = 7, 9_000
    tools = build_toolset(played.conversation).tools
    assert {tool.max_bytes for tool in tools.values()} == {9_000}
    assert tools["fetch_url"].timeout == 7
    assert tools["current_time"].timeout == TOOLS["current_time"].timeout
