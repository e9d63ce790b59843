"""Which price is in force at a moment."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from conversations.agent.usage import Usage
from conversations.budgets.prices import filter_prices_at, load_price_list
from conversations.models import ModelPrice
from tests.support import stored_turns

pytestmark = pytest.mark.django_db


def test_at_the_moment_of_a_change_the_new_price_alone_is_in_force() -> None:
    change = timezone.now() + timedelta(days=1)
    old = ModelPrice.objects.get(
        model=stored_turns.MODEL, kind="output", above_tokens=0, effective_to=None
    )
    ModelPrice.objects.filter(pk=old.pk).update(effective_to=change)
    new = ModelPrice.objects.create(
        model=old.model, kind="output", micros_per_million=1, effective_from=change
    )
    moment = timedelta(microseconds=1)
    for at, row in ((change - moment, old), (change, new), (change + moment, new)):
        assert filter_prices_at(at).get(model=old.model, kind="output", above_tokens=0) == row
        usage = Usage(0, 1_000_000, 0, 0, 0)
        assert load_price_list(old.model_id, at).cost(usage) == row.micros_per_million


def test_of_two_prices_that_meet_the_later_one_is_in_force_whichever_was_stored_first() -> None:
    change = timezone.now()
    tier = {"model_id": stored_turns.MODEL, "kind": "output", "above_tokens": 300_000}
    ModelPrice.objects.create(**tier, micros_per_million=2, effective_from=change)
    ModelPrice.objects.create(
        **tier,
        micros_per_million=1,
        effective_from=change - timedelta(days=1),
        effective_to=change,
    )
    assert dict(load_price_list(stored_turns.MODEL, change).tiers)[300_000] == {"output": 2}
