"""What a model costs at a moment."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from conversations.models import ModelPrice
from conversations.prices import PriceList


def price_list(model: str, at: datetime) -> PriceList:
    """Give the prices in force; a kind that has none is refused when it is asked for."""
    rows = ModelPrice.objects.filter(
        Q(effective_to=None) | Q(effective_to__gt=at), model_id=model, effective_from__lte=at
    )
    tiers: dict[int, dict[str, int]] = {}
    for row in rows:
        tiers.setdefault(row.above_tokens, {})[row.kind] = row.micros_per_million
    return PriceList(model, tuple(tiers.items()))
