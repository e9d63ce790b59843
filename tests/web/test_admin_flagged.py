"""Impossible figures of usage and prices never become money, and staff see them flagged."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.urls import reverse
from django.utils import timezone

from conversations.agent.prices import PriceList
from conversations.agent.usage import MOST_TOKENS, read_usage
from conversations.budgets.status import list_statuses
from conversations.budgets.usage.sums import FLAGGED, is_flagged
from conversations.context.errors import WireError
from conversations.context.view import wire
from conversations.models import ApiCall, ApiResult, BudgetWindow, ModelPrice
from conversations.models.catalogue import MOST_RATE
from tests.support import budget_rows, people_and_turns, stored_turns
from tests.web.test_admin_budgets import words
from tests.web.test_admin_people import price, text
from tests.web.test_admin_review import listed, superuser

pytestmark = pytest.mark.django_db
GOOD = {"input_tokens": 100, "output_tokens": 20}
ODD: list[dict[str, Any]] = [
    {"input_tokens": -5}, {"output_tokens": -(10**18)}, {"input_tokens": 10**30},
    {"input_tokens": 1e308}, {"cache_read_input_tokens": "7"}, {"input_tokens": True},
    {"output_tokens": [1]}, {"cache_creation": {"ephemeral_1h_input_tokens": -9}},
]  # fmt: skip


def settled(usage: dict[str, Any] | None) -> ApiResult:
    """Play a call with this usage, under a budget."""
    user = people_and_turns.person()
    people_and_turns.limited(user, budget_rows.PLENTY)
    lease = people_and_turns.started_turn(user)
    sent = people_and_turns.opened(lease)
    said = read_usage(usage) if usage is not None else None
    stored_turns.close(lease, sent.call, people_and_turns.complete(usage=said))
    return ApiResult.objects.get(call=sent.call)


@pytest.mark.parametrize("figure", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_a_figure_that_is_no_number_does_not_come_in(figure: str) -> None:
    with pytest.raises(WireError):
        wire.decode(f'{{"usage":{{"output_tokens":{figure}}}}}')


@pytest.mark.parametrize("odd", ODD)
def test_an_impossible_figure_costs_something_and_is_flagged(odd: dict[str, Any]) -> None:
    row = settled(GOOD | odd)
    window = BudgetWindow.objects.get()
    assert row.cost_basis == "clamped"
    assert 0 < row.cost_micros == window.spent + window.overrun <= MOST_TOKENS * MOST_RATE
    assert window.held == 0
    assert list_statuses(window.user_id or 0)[0].spent == row.cost_micros
    assert budget_rows.clean()
    assert is_flagged(row)
    assert ApiCall.objects.filter(FLAGGED).count() == 1


@pytest.mark.parametrize("bare", [None, {}, {"input_tokens": None}, {"output_tokens": None}])
def test_a_whole_answer_without_figures_is_not_free_and_is_flagged(bare: Any) -> None:
    row = settled(bare)
    assert row.cost_basis == "estimated"
    assert row.cost_micros > 0
    assert is_flagged(row)
    assert ApiCall.objects.filter(FLAGGED).exists()


def test_what_is_flagged_is_counted_on_the_overview_and_found_in_the_list() -> None:
    lease = people_and_turns.started_turn()
    stored_turns.close(
        lease,
        people_and_turns.opened(lease).call,
        people_and_turns.complete(usage=read_usage(GOOD)),
    )
    client = superuser()
    assert "Flagged figures 0" in words(client.get(reverse("admin:overview")))
    odd = people_and_turns.complete(usage=read_usage({"input_tokens": -1}))
    stored_turns.close(lease, people_and_turns.opened(lease).call, odd)
    page = client.get(reverse("admin:overview"))
    assert "Flagged figures 1" in words(page)
    assert "?figures=flagged" in text(page)
    calls = listed(client, ApiCall, "?figures=flagged")
    assert calls.count("⚑ flagged") == calls.count('class="field-cost') == 1
    assert listed(client, ApiCall).count('class="field-cost') == 2


@pytest.mark.parametrize("rate", ["-1", "1000000.000001", "NaN", "1e400", "Infinity", ""])
def test_a_price_that_cannot_be_is_refused_by_the_form(rate: str) -> None:
    add = reverse("admin:conversations_modelprice_add")
    before = ModelPrice.objects.count()
    kind = {"kind": "cache_write_1h", "model": "claude-haiku-4-5", "above_tokens": 1}
    answer = superuser().post(add, price(micros_per_million=rate, **kind))
    assert answer.status_code == 200
    assert ModelPrice.objects.count() == before


@pytest.mark.parametrize("rate", [-1, MOST_RATE + 1])
def test_a_price_that_cannot_be_is_refused_by_the_database(rate: int) -> None:
    row = ModelPrice(
        model_id="claude-haiku-4-5", kind="input", above_tokens=7, micros_per_million=rate,
        effective_from=timezone.now(),
    )  # fmt: skip
    with pytest.raises(IntegrityError), transaction.atomic():
        row.save()


def test_the_dearest_bill_fits_the_database() -> None:
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens")
    usage = read_usage(dict.fromkeys((*names, "cache_creation_input_tokens"), 10**30))
    kinds = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read")
    prices = PriceList("m", ((0, dict.fromkeys(kinds, MOST_RATE)),))
    assert prices.cost(usage) < 2**63
