"""The bill of a call: what it was charged for, and by which price rows, as stored text.

A cost can be computed again from it, whatever the usage was: reported, estimated or clamped.
"""

from __future__ import annotations

from typing import Any

from conversations.agent.prices import PriceList
from conversations.agent.usage import Usage
from conversations.context.view import wire


def write_bill(usage: Usage, prices: PriceList) -> str:
    """Write what is billed, with the ids of the price rows in force."""
    return wire.encode({"prices": sorted(prices.ids), **list_charges(usage)})


def list_charges(usage: Usage) -> dict[str, Any]:
    """Return what a usage is charged for; a part is its counts and the size that sets its rates."""
    parts = [
        [
            part.input,
            part.output,
            part.cache_read,
            part.cache_write_5m,
            part.cache_write_1h,
            part.tier,
        ]
        for part in usage.billed
    ]
    return {"parts": parts, "searches": usage.searches, "factors": list(usage.factors)}


def read_charges(bill: dict[str, Any]) -> Usage:
    """Return a usage that costs what a stored bill does."""
    parts = tuple(
        Usage(fresh, output, read, minutes, hour, last=tier)
        for fresh, output, read, minutes, hour, tier in bill["parts"]
    )
    searches, factors = int(bill["searches"]), tuple(bill["factors"])
    return Usage(0, 0, 0, 0, 0, parts=parts, searches=searches, factors=factors)
