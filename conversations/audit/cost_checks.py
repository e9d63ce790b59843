"""Checks of costs: each is computed again from the usage and the prices that its result names."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from conversations.agent.bill import list_charges, read_charges
from conversations.agent.prices import PriceMissing
from conversations.agent.usage import read_usage
from conversations.budgets.price_book import GRACE
from conversations.budgets.prices import build_price_list
from conversations.context.view import wire
from conversations.log.findings import DAMAGE, Problem, Tally, describe_error, split_chunks
from conversations.models import ApiResult, Conversation, ModelPrice


def check_costs(conversation: Conversation, tally: Tally) -> Iterator[Problem]:
    """Compute the cost of every result again; those that name no prices are counted."""
    place = str(conversation.public_id)
    rows = ApiResult.objects.filter(call__conversation=conversation).order_by("pk")
    for keys in split_chunks(list(rows.values_list("pk", flat=True))):
        some = list(rows.filter(pk__in=keys).select_related("call"))
        bills = {row.pk: _read_bill(row) for row in some}
        named = {key for bill in bills.values() if bill for key in bill.get("prices", ())}
        prices = ModelPrice.objects.in_bulk(named)
        for row in some:
            bill = bills[row.pk]
            if bill is None:
                tally.unnamed += row.cost_micros > 0
                continue
            if flaw := _find_flaw(row, bill, prices):
                yield Problem("apiresult", str(row.pk), flaw, place)


def _read_bill(row: ApiResult) -> dict[str, Any] | None:
    """Return the bill, {} if it cannot be read, None if there is none."""
    if not row.bill:
        return None
    try:
        bill = dict(wire.decode(row.bill))
        return bill if all(isinstance(key, int) for key in bill["prices"]) else {}
    except DAMAGE:
        return {}


def _find_flaw(row: ApiResult, bill: dict[str, Any], prices: dict[int, ModelPrice]) -> str:
    try:
        named = [prices.get(key) for key in bill["prices"]]
        found = [price for price in named if price is not None and _is_in_force(price, row)]
        if len(found) != len(named) or not found:
            return "changed: a price that it names is gone, or was not in force"
        rates = ((p.pk, p.above_tokens, p.kind, p.micros_per_million) for p in found)
        cost = build_price_list(row.call.model, rates).cost(read_charges(bill))
        if cost != row.cost_micros:
            return f"changed: it cost {row.cost_micros}, and by its usage and prices {cost}"
        if row.cost_basis == "exact" and not _is_of_usage(bill, row.usage):
            return "changed: what it was charged for is not what the API reported"
    except (PriceMissing, *DAMAGE) as error:
        return f"cannot be computed again: {describe_error(error)}"
    return ""


def _is_in_force(price: ModelPrice, row: ApiResult) -> bool:
    # A price that starts now may close the one before it a little earlier.
    at, ends = row.call.sent_at, price.effective_to
    is_open = ends is None or ends + GRACE + timedelta(seconds=1) > at
    return price.model_id == row.call.model and price.effective_from <= at and is_open


def _is_of_usage(bill: dict[str, Any], usage: str) -> bool:
    """Return whether the bill has the figures of the usage, geo, speed and tier included."""
    charged = {name: value for name, value in bill.items() if name != "prices"}
    return usage == "{}" or charged == list_charges(read_usage(wire.decode(usage)))
