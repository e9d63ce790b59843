"""Caps of one turn, and what is asked before its tools run."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone

from conversations.agent.ports import Refused
from conversations.agent.prices import LEAST_OUTPUT
from conversations.budgets.admission import demand_next_call
from conversations.budgets.affordability import size_call
from conversations.budgets.caps import resolve_turn_caps
from conversations.budgets.prices import load_price_list
from conversations.context.view.envelope import build_envelope
from conversations.models import ApiCall, Budget, ModelPrice, TurnCap, User
from tests.support import people_and_turns, stored_turns
from tests.support.budget_rows import PLENTY, member, play, worst

pytestmark = pytest.mark.django_db


def test_a_turn_stops_at_its_own_cap_of_money() -> None:
    user = member("Research")
    lease = people_and_turns.started_turn(user)
    cost = play(lease)
    row = TurnCap.objects.create(
        group=Group.objects.latest("pk"), micros=cost + worst(lease, 1_400)
    )
    sent = people_and_turns.opened(lease)
    assert 1_024 <= ApiCall.objects.get(pk=sent.call).max_tokens < 2_000
    stored_turns.close(lease, sent.call, people_and_turns.complete())
    TurnCap.objects.filter(pk=row.pk).update(micros=cost)
    with pytest.raises(Refused, match="Send a message to go on") as refused:
        people_and_turns.opened(lease)
    assert refused.value.code == "turn_money"
    TurnCap.objects.create(user=user, micros=0)
    people_and_turns.opened(lease)


def test_a_turn_may_reach_its_cap_and_not_pass_it() -> None:
    user = people_and_turns.person()
    lease = people_and_turns.started_turn(user)
    least = play(lease) + worst(lease, LEAST_OUTPUT)
    row = TurnCap.objects.create(user=user, micros=least - 1)
    with pytest.raises(Refused, match="This turn may cost"):
        people_and_turns.opened(lease)
    TurnCap.objects.filter(pk=row.pk).update(micros=least)
    # A budget with more room than the cap changes nothing.
    people_and_turns.limited(user, PLENTY)
    sent = people_and_turns.opened(lease)
    assert ApiCall.objects.get(pk=sent.call).max_tokens == LEAST_OUTPUT


def test_caps_of_a_turn_are_the_persons_else_the_groups_largest_else_the_sites(
    settings: Any,
) -> None:
    settings.AGENTWEB_MAX_ROUNDS, settings.AGENTWEB_MAX_TURN_MICROS = 7, 5
    user = member("Research", "Sales")
    assert (resolve_turn_caps(user.pk).rounds, resolve_turn_caps(user.pk).micros) == (7, 5)
    research, sales = user.groups.order_by("name")
    TurnCap.objects.create(group=research, rounds=9, seconds=60)
    TurnCap.objects.create(group=sales, rounds=8, tool_calls=0, micros=0)
    found = resolve_turn_caps(user.pk)
    assert (found.rounds, found.seconds, found.tool_calls, found.micros) == (9, 60, 0, 0)
    TurnCap.objects.create(user=user, rounds=2)
    assert (resolve_turn_caps(user.pk).rounds, resolve_turn_caps(user.pk).seconds) == (2, 60)


def test_no_tool_needs_to_run_where_no_call_could_follow() -> None:
    user = people_and_turns.person()
    budget = people_and_turns.limited(user, PLENTY)
    lease = people_and_turns.started_turn(user)
    call = people_and_turns.opened(lease).call
    stored_turns.close(lease, call, people_and_turns.complete())
    before = people_and_turns.everything()
    demand_next_call(lease=lease, call_id=call)
    assert people_and_turns.everything() == before
    Budget.objects.filter(pk=budget.pk).update(limit=0)
    with pytest.raises(Refused, match="monthly budget"):
        demand_next_call(lease=lease, call_id=call)
    Budget.objects.update(is_active=False)
    TurnCap.objects.create(user=user, micros=1)
    with pytest.raises(Refused, match="This turn may cost"):
        demand_next_call(lease=lease, call_id=call)
    TurnCap.objects.all().delete()
    User.objects.update(is_active=False)
    with pytest.raises(Refused, match="not active"):
        demand_next_call(lease=lease, call_id=call)
    User.objects.update(is_active=True)
    ModelPrice.objects.filter(kind="output").delete()
    with pytest.raises(Refused, match="no price"):
        demand_next_call(lease=lease, call_id=call)


def test_no_tool_runs_where_the_next_call_with_its_search_could_not_be_paid() -> None:
    user = people_and_turns.person()
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
    envelope = build_envelope(
        model=stored_turns.MODEL, max_tokens=2_000, system="s", tools=[search]
    )
    lease = people_and_turns.started_turn(user)
    call = people_and_turns.opened(lease, envelope).call
    stored_turns.close(lease, call, people_and_turns.complete())
    prices = load_price_list(stored_turns.MODEL, timezone.now())
    tokens = ApiCall.objects.get(pk=call).estimated_tokens
    budget = people_and_turns.limited(user, size_call(prices, tokens, 1).cost)
    demand_next_call(lease=lease, call_id=call)
    Budget.objects.filter(pk=budget.pk).update(limit=budget.limit - 1)
    with pytest.raises(Refused, match="monthly budget"):
        demand_next_call(lease=lease, call_id=call)
