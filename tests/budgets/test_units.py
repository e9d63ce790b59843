"""The registry of budget units: complete at import, and open for another unit."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db.models import F, Q

from conversations.agent.prices import PriceList
from conversations.agent.usage import Usage
from conversations.budgets import units
from conversations.budgets.amounts import parse_count
from conversations.budgets.effective import BudgetStatus, Rule
from conversations.budgets.refusals import build_limit_refusal
from conversations.budgets.units import MONEY, TOKENS, TURNS, UNITS, CallSize, CallUse, Unit
from conversations.models import Budget

RATES = {"input": 2_000_000, "cache_write_5m": 2_500_000, "cache_read": 1, "output": 10_000_000}
SIZE = CallSize(PriceList("m", ((0, RATES | {"web_search": 10_000}),)), 1_000, 2_000)
#: A unit that the product does not have: all that another one needs.
SEARCHES = Unit(
    name="searches",
    worst=lambda size: size.searches,
    used=lambda use: use.usage.searches,
    fit_output=lambda size, _room: size.output_tokens,
    is_once_per_turn=False,
    counts_failed=False,
    wrong_settlement=~Q(amount=F("call__result__cost_micros")),
    show=lambda amount: f"{amount:,} searches",
    read=partial(parse_count, noun="searches"),
    digits=0,
    measure="searches",
    refusal="%(budget)s of %(limit)s (%(whose)s) is used up: %(used)s were made.",
)


def test_every_unit_of_the_model_has_its_row_in_the_same_order() -> None:
    assert list(UNITS) == Budget.Unit.values


@pytest.mark.parametrize(
    "rows",
    [(MONEY, TOKENS), (MONEY, TURNS, TOKENS), (MONEY, TOKENS, TURNS, SEARCHES), ()],
)
def test_other_rows_than_the_units_of_the_model_are_an_error(rows: Any) -> None:
    with pytest.raises(ImproperlyConfigured, match="both need the same units"):
        units.build_registry(rows)


def test_a_row_that_is_written_with_other_digits_than_the_model_is_an_error() -> None:
    with pytest.raises(ImproperlyConfigured, match="writes tokens with other digits"):
        units.build_registry(replace(unit, digits=6) for unit in UNITS.values())


@pytest.mark.parametrize("part", [field.name for field in fields(Unit)])
def test_a_row_without_one_of_its_parts_is_an_error(part: str) -> None:
    parts = {field.name: getattr(MONEY, field.name) for field in fields(Unit)}
    del parts[part]
    with pytest.raises(TypeError, match=part):
        Unit(**parts)


@pytest.mark.parametrize("unit", UNITS.values(), ids=list(UNITS))
@pytest.mark.parametrize("amount", [1, 7, 1_024, 1_234_567, 50_000_000])
def test_what_is_written_is_read_as_the_same(unit: Unit, amount: int) -> None:
    written = units.format_amount(amount, unit.name)
    assert units.parse_amount(written, unit.name) == amount
    assert float(units.convert_to_cell(amount, unit.name)) == float(written)
    assert units.show_amount(None, unit.name) == ""


@pytest.mark.parametrize("unit", [MONEY, TOKENS], ids=["money", "tokens"])
@pytest.mark.parametrize("room", [500, 3_000, 12_345, 100_000])
def test_a_call_with_the_answer_that_fits_stays_within_the_room(unit: Unit, room: int) -> None:
    most = unit.fit_output(SIZE, room)
    assert most <= SIZE.output_tokens
    if most >= 0:
        assert unit.worst(replace(SIZE, output_tokens=most)) <= room
    if 0 <= most < SIZE.output_tokens:
        assert unit.worst(replace(SIZE, output_tokens=most + 1)) > room


def test_another_unit_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(UNITS, SEARCHES.name, SEARCHES)  # type: ignore[arg-type]
    assert SEARCHES.worst(replace(SIZE, searches=5)) == 5
    assert SEARCHES.used(CallUse(9, Usage(1, 2, 0, 0, 0, searches=3))) == 3
    assert units.parse_amount("1,200", "searches") == 1_200
    assert units.format_amount(1_200, "searches") == "1200"
    rule = Rule(1, "site", "pool", "searches", "day", "UTC", 10)
    starts = datetime(2026, 11, 24, tzinfo=UTC)
    told = build_limit_refusal(BudgetStatus(rule, starts, None, 10, 9, 1), 5).text
    assert told == (
        "The daily budget of 10 searches (shared by everybody) is used up: 10 searches were made."
    )
