"""Searches of the web: what is held for them, and what they are billed for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agentweb.emulator import json_codec
from agentweb.emulator.app import create_app
from conversations.agent.answer import Answer
from conversations.agent.ports import (
    Ending,
    ModelFailed,
    Refused,
    SearchesLimited,
    Sending,
    Sent,
)
from conversations.agent.prices import PriceList
from conversations.agent.usage import Usage, read_usage
from conversations.budgets.affordability import pad_estimate
from conversations.budgets.search_rounds import LEAST_CACHED, SEARCH_TOKENS, count_new, count_reread
from conversations.context.view import wire
from conversations.context.view.cache_breakpoints import Lifetime
from conversations.context.view.envelope import Envelope, build_envelope, count_searches
from conversations.log.chain import lock_conversation
from conversations.log.leases import Lease
from conversations.models import ApiCall, ApiResult, Budget, BudgetWindow, Reservation, Turn
from conversations.toolbox.web_search import build_definition
from conversations.turns import calls
from conversations.turns.billed_usage import IN_FLIGHT
from tests.emulator.conftest import Asker
from tests.support import people_and_turns, stored_turns
from tests.support.budget_rows import PLENTY, padded, site

pytestmark = pytest.mark.django_db
PRICE = 10_000
SEARCH = "search the web 5 times, 900 words each, for tea"


def searching() -> Envelope:
    return build_envelope(
        model=stored_turns.MODEL, max_tokens=2_000, system="Be brief.", tools=[build_definition()]
    )


def opened(lease: Lease, envelope: Envelope | None = None) -> Sent:
    view = stored_turns.loaded(lease).view
    envelope = envelope or searching()
    messages = view.join(envelope.lifetime)
    return calls.open_call(
        lease=lease, sending=Sending("reply", envelope, messages, view.tokens, view, 1)
    )


def started_turn(text: str = "Hello") -> Lease:
    site(10 * PLENTY)
    return people_and_turns.started_turn(people_and_turns.person("ada"), text)


def settled(sent: Sent) -> ApiResult:
    return ApiResult.objects.get(call_id=sent.call)


def usage(searches: object, **more: Any) -> Usage:
    figures = {"input_tokens": 100, "output_tokens": 10, **more}
    return read_usage(figures | {"server_tool_use": {"web_search_requests": searches}})


def cost(tokens: Usage) -> int:
    rates = {"input": 2_000_000, "output": 10_000_000, "cache_write_5m": 2_500_000}
    return PriceList(stored_turns.MODEL, ((0, rates | {"cache_read": 100_000}),)).cost(tokens)


def answer(sent: Sent, pieces: int = 0) -> tuple[Answer, int]:
    """Have the emulator answer, cut after so many pieces; return the answer and its bill."""
    ask, found = Asker(create_app()), Answer()
    faults = {"x_emulator_fault": f"cut_after:{pieces}"} if pieces else {}
    for _, event in ask(json_codec.decode(sent.body.encode()), **faults).events:
        found.feed(event)
    return found, ask.emulator.billed_micros


def cut(found: Answer) -> Ending:
    """Return how a call ends whose connection is lost."""
    failure = ModelFailed("cut", "lost", may_retry=False, may_cost=True, was_shown=True)
    return Ending(
        "truncated",
        found.usage,
        received_tokens=found.tokens(stored_turns.MODEL),
        has_thought=found.has_thought,
        received_searches=found.searches,
        added_by_rounds=found.list_rounds(stored_turns.MODEL),
        failure=failure,
    )


@pytest.mark.parametrize(
    ("request_tokens", "searches", "read"),
    [
        (2_050, 2, 31_772),
        (2_060, 4, 63_011),
        (2_060, 3, 37_949),
        (2_477, 2, 40_573),
        (2_402, 2, 39_517),
    ],
)
def test_recorded_answers_read_no_more_than_is_held(
    request_tokens: int, searches: int, read: int
) -> None:
    assert count_new(request_tokens, searches) + count_reread(request_tokens, searches) >= read


def test_all_searches_and_what_they_may_find_are_held_beforehand() -> None:
    lease = started_turn()
    request = padded(lease)
    opened(lease)
    (held,) = Reservation.objects.values_list("amount", flat=True)
    assert request < LEAST_CACHED
    new, again = 7 * request + 5 * SEARCH_TOKENS, 15 * SEARCH_TOKENS
    # A tenth more for the tokens: the workspace may be kept in one country.
    assert held == -(-(new * 25 + again + 2_000 * 100) * 11 // 100) + 5 * PRICE


@pytest.mark.parametrize("words", [1, 30_000])
def test_a_token_budget_holds_all_that_the_rounds_of_searches_read(words: int) -> None:
    lease = started_turn(f"{'word ' * words}\n\n{SEARCH}")
    Budget.objects.create(scope="site", unit="tokens", kind="per_member", limit=5_000_000)
    sent = opened(lease)
    found, bill = answer(sent)
    stored_turns.close(lease, sent.call, Ending("complete", found.usage, found.stop_reason))
    (window,) = BudgetWindow.objects.filter(budget__unit="tokens")
    (held,) = Reservation.objects.filter(window=window).values_list("amount", flat=True)
    assert found.usage is not None
    assert found.usage.searches == 5
    # Six readings of the request; one is not enough to hold.
    assert 5 * pad_estimate(sent_tokens(sent)) < window.spent <= held
    assert (window.overrun, settled(sent).cost_micros) == (0, bill)


def sent_tokens(sent: Sent) -> int:
    return ApiCall.objects.get(pk=sent.call).estimated_tokens * 3 // 4


@pytest.mark.parametrize(("room", "offered"), [(60_000, 1), (120_000, 1), (2_000_000, 5)])
def test_one_search_is_offered_before_a_call_is_refused(room: int, offered: int) -> None:
    lease, envelope = started_turn(), searching()
    Budget.objects.create(scope="site", unit="tokens", kind="per_member", limit=room)
    if offered < envelope.searches:
        with pytest.raises(SearchesLimited) as limited:
            opened(lease, envelope)
        envelope = envelope.with_searches(limited.value.searches)
    sent = opened(lease, envelope)
    assert count_searches(wire.decode(sent.body)) == offered
    (held,) = Reservation.objects.filter(window__budget__unit="tokens").values_list("amount")
    assert held[0] <= room


def test_a_call_is_refused_where_not_even_one_search_fits() -> None:
    lease = started_turn()
    Budget.objects.create(scope="site", unit="tokens", kind="per_member", limit=SEARCH_TOKENS)
    with pytest.raises(Refused, match="budget"):
        opened(lease)


def test_the_searches_that_were_made_are_settled_exactly() -> None:
    lease = started_turn()
    sent = opened(lease)
    stored_turns.close(lease, sent.call, Ending("complete", usage(3), "end_turn"))
    row = settled(sent)
    assert (row.cost_micros, row.cost_basis) == (cost(usage(0)) + 3 * PRICE, "exact")


@pytest.mark.parametrize("lifetime", ["5m", "1h"])
@pytest.mark.parametrize("words", [1, 3_000])
def test_what_later_rounds_write_is_billed_at_the_lifetime_of_the_request(
    lifetime: Lifetime, words: int
) -> None:
    lease = started_turn(f"{'word ' * words}\n\n{SEARCH}")
    sent = opened(lease, searching().with_lifetime(lifetime))
    found, bill = answer(sent)
    stored_turns.close(lease, sent.call, Ending("complete", found.usage, found.stop_reason))
    row = settled(sent)
    assert (row.cost_micros, row.cost_basis) == (bill, "exact")


def test_iterations_and_searches_are_billed_together() -> None:
    lease = started_turn()
    sent = opened(lease)
    part = {"type": "message", "input_tokens": 50, "output_tokens": 5}
    stored_turns.close(
        lease, sent.call, Ending("complete", usage(2, iterations=[part, part]), "end_turn")
    )
    assert settled(sent).cost_micros == cost(usage(0)) + 2 * PRICE


@pytest.mark.parametrize(
    ("said", "billed"), [(6, 5), (10**12, 5), (-1, 0), ("3", 0), (True, 0), (None, 0), (2.5, 0)]
)
def test_an_impossible_number_of_searches_never_makes_money(said: object, billed: int) -> None:
    lease = started_turn()
    sent = opened(lease)
    stored_turns.close(lease, sent.call, Ending("complete", usage(said), "end_turn"))
    row = settled(sent)
    assert row.cost_micros == cost(usage(0)) + billed * PRICE
    assert (row.cost_basis == "clamped") == (said is not None)


def test_searches_that_were_never_offered_are_not_billed() -> None:
    lease = started_turn()
    sent = people_and_turns.opened(lease)
    stored_turns.close(lease, sent.call, Ending("complete", usage(4), "end_turn"))
    row = settled(sent)
    assert (row.cost_micros, row.cost_basis) == (cost(usage(0)), "clamped")


def test_of_a_cut_answer_the_searches_that_came_are_billed() -> None:
    lease = started_turn()
    sent = opened(lease)
    said = replace(usage(None), is_final=False)
    ending = Ending("truncated", said, received_tokens=10, received_searches=2)
    stored_turns.close(lease, sent.call, ending)
    assert settled(sent).cost_micros == cost(usage(0)) + 2 * PRICE


@pytest.mark.parametrize("lifetime", ["5m", "1h"])
@pytest.mark.parametrize("words", [1, 3_000])
@pytest.mark.parametrize("pieces", [6, 12, 18, 21])
def test_of_a_cut_answer_every_round_that_had_begun_is_billed(
    pieces: int, words: int, lifetime: Lifetime
) -> None:
    lease = started_turn(f"{'word ' * words}\n\n{SEARCH}")
    sent = opened(lease, searching().with_lifetime(lifetime))
    found, bill = answer(sent, pieces)
    stored_turns.close(lease, sent.call, cut(found))
    row = settled(sent)
    assert not found.is_complete
    assert row.cost_basis == "estimated"
    assert bill <= row.cost_micros <= bill * 5 // 4


def test_a_lost_call_keeps_what_its_searches_could_have_cost() -> None:
    lease = started_turn()
    sent = opened(lease)
    (held,) = Reservation.objects.values_list("amount", flat=True)
    row = calls.ApiCall.objects.get(pk=sent.call)
    Turn.objects.update(lease_until=row.sent_at)
    calls.lose_call(call=row, conversation=lock_conversation(row.conversation_id))
    paid = settled(sent).cost_micros
    # All but the answer, which had hardly begun.
    assert paid == held - (2_000 - IN_FLIGHT) * 11


def test_searches_that_do_not_fit_in_the_budget_are_not_admitted() -> None:
    site(PRICE)
    lease = people_and_turns.started_turn(people_and_turns.person("bea"))
    with pytest.raises(Refused, match="budget"):
        opened(lease)
    assert not Reservation.objects.exists()
