from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from conversations.agent.bill import list_charges, read_charges, write_bill
from conversations.agent.prices import PriceList
from conversations.agent.usage import Usage
from conversations.context.view import wire
from tests.agent.test_prices import lists, usages


@given(lists, usages, st.lists(usages, max_size=3), st.integers(0, 20))
def test_a_stored_bill_costs_what_its_usage_did(
    prices: PriceList, whole: Usage, parts: list[Usage], searches: int
) -> None:
    usage = replace(whole, parts=tuple(parts), searches=searches)
    bill = wire.decode(write_bill(usage, replace(prices, ids=(9, 4))))
    assert bill["prices"] == [4, 9]
    assert prices.cost(read_charges(bill)) == prices.cost(usage)
    assert list_charges(read_charges(bill)) == list_charges(usage)
