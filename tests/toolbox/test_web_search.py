"""Searches of the web: who is offered them, what they exclude, and what they cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from conversations.agent.ports import Ending, Refused, Sending
from conversations.agent.prices import PriceList
from conversations.agent.usage import Usage, read_usage
from conversations.budgets.judgement import SEARCH_TOKENS
from conversations.context.view.envelope import Envelope, build_envelope
from conversations.log.chain import lock_conversation
from conversations.log.leases import Lease
from conversations.models import (
    ApiResult,
    Conversation,
    ModelPrice,
    Reservation,
    ToolCall,
    ToolRule,
    Turn,
    WebSearch,
)
from conversations.reductions.conversation_settings import read_job_facts
from conversations.toolbox.tool_access import choose_web_search
from conversations.toolbox.toolset import build_toolset
from conversations.toolbox.web_search import build_definition
from conversations.turns import calls
from conversations.turns.billed_usage import IN_FLIGHT
from conversations.turns.forks import fork_conversation
from tests.support import people_and_turns, stored_turns
from tests.support.budget_rows import PLENTY, padded, site
from tests.support.stored_turns import Played

pytestmark = pytest.mark.django_db
PRICE = 10_000


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
    assert "something private was read here" in found.refused["web_search"]
    assert private(conversation) == before


def test_what_was_read_on_another_branch_speaks_against_nothing(played: Played) -> None:
    read_privately(played)
    Conversation.objects.filter(pk=played.conversation.pk).update(leaf=0, tip=0)
    assert build_toolset(chosen(played, WebSearch.ALONE)).server_tools


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


def test_a_fork_starts_without(played: Played) -> None:
    chosen(played, WebSearch.BESIDE)
    assert fork_conversation(turn=played.turn).web_search == WebSearch.OFF


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


def searching() -> Envelope:
    return build_envelope(
        model=stored_turns.MODEL, max_tokens=2_000, system="Be brief.", tools=[build_definition()]
    )


def opened(lease: Lease) -> int:
    view = stored_turns.loaded(lease).view
    return calls.open_call(
        lease=lease, sending=Sending("reply", searching(), view.body, view.tokens, view, 1)
    ).call


def started_turn() -> Lease:
    site(PLENTY)
    return people_and_turns.started_turn(people_and_turns.person("ada"))


def settled(call: int) -> ApiResult:
    return ApiResult.objects.get(call_id=call)


def usage(searches: object, **more: Any) -> Usage:
    figures = {"input_tokens": 100, "output_tokens": 10, **more}
    return read_usage(figures | {"server_tool_use": {"web_search_requests": searches}})


def cost(tokens: Usage) -> int:
    rates = {"input": 2_000_000, "output": 10_000_000, "cache_write_5m": 2_500_000}
    return PriceList(stored_turns.MODEL, ((0, rates | {"cache_read": 100_000}),)).cost(tokens)


def test_all_searches_and_what_they_may_find_are_held_beforehand() -> None:
    lease = started_turn()
    tokens = padded(lease) + 5 * SEARCH_TOKENS
    opened(lease)
    (held,) = Reservation.objects.values_list("amount", flat=True)
    assert held == -(-tokens * 25 // 10) + 2_000 * 10 + 5 * PRICE


def test_the_searches_that_were_made_are_settled_exactly() -> None:
    lease = started_turn()
    call = opened(lease)
    stored_turns.close(lease, call, Ending("complete", usage(3), "end_turn"))
    row = settled(call)
    assert (row.cost_micros, row.cost_basis) == (cost(usage(0)) + 3 * PRICE, "exact")


def test_iterations_and_searches_are_billed_together() -> None:
    lease = started_turn()
    call = opened(lease)
    part = {"type": "message", "input_tokens": 50, "output_tokens": 5}
    stored_turns.close(
        lease, call, Ending("complete", usage(2, iterations=[part, part]), "end_turn")
    )
    assert settled(call).cost_micros == cost(usage(0)) + 2 * PRICE


@pytest.mark.parametrize(
    ("said", "billed"), [(6, 5), (10**12, 5), (-1, 0), ("3", 0), (True, 0), (None, 0), (2.5, 0)]
)
def test_an_impossible_number_of_searches_never_makes_money(said: object, billed: int) -> None:
    lease = started_turn()
    call = opened(lease)
    stored_turns.close(lease, call, Ending("complete", usage(said), "end_turn"))
    row = settled(call)
    assert row.cost_micros == cost(usage(0)) + billed * PRICE
    assert (row.cost_basis == "clamped") == (said is not None)


def test_searches_that_were_never_offered_are_not_billed() -> None:
    lease = started_turn()
    sent = people_and_turns.opened(lease)
    stored_turns.close(lease, sent.call, Ending("complete", usage(4), "end_turn"))
    row = settled(sent.call)
    assert (row.cost_micros, row.cost_basis) == (cost(usage(0)), "clamped")


def test_of_a_cut_answer_the_searches_that_came_are_billed() -> None:
    lease = started_turn()
    call = opened(lease)
    said = replace(usage(None), is_final=False)
    ending = Ending("truncated", said, received_tokens=10, received_searches=2)
    stored_turns.close(lease, call, ending)
    assert settled(call).cost_micros == cost(usage(0)) + 2 * PRICE


def test_a_lost_call_keeps_what_its_searches_could_have_cost() -> None:
    lease = started_turn()
    call = opened(lease)
    (held,) = Reservation.objects.values_list("amount", flat=True)
    row = calls.ApiCall.objects.get(pk=call)
    Turn.objects.update(lease_until=row.sent_at)
    calls.lose_call(call=row, conversation=lock_conversation(row.conversation_id))
    paid = settled(call).cost_micros
    # All but the answer, which had hardly begun.
    assert paid == held - (2_000 - IN_FLIGHT) * 10


def test_searches_that_do_not_fit_in_the_budget_are_not_admitted() -> None:
    site(5 * PRICE)
    lease = people_and_turns.started_turn(people_and_turns.person("bea"))
    with pytest.raises(Refused, match="budget"):
        opened(lease)
    assert not Reservation.objects.exists()
