"""What a process learns of how conversations go on: from the rows, without the young ones."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from conversations.context.policy.continuation import EVEN
from conversations.models import Conversation
from conversations.turns import call_counts
from tests.support import stored_turns

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    call_counts._Learned.continuation = EVEN


def age(days: int, idle: int) -> None:
    now = timezone.now()
    Conversation.objects.update(
        created_at=now - timedelta(days=days), updated_at=now - timedelta(days=idle)
    )


@pytest.mark.parametrize(("days", "idle", "rate"), [(3, 3, 500), (30, 1, 500), (30, 30, 333)])
def test_conversations_that_ended_lower_the_expectation(days: int, idle: int, rate: int) -> None:
    for name in ("ann", "ben", "cem", "dan", "eva"):
        stored_turns.played(name)
    age(days, idle)
    call_counts.refresh_continuation()
    # Two calls each: the first doubling was passed by all, the second one by none.
    learned = call_counts.current_continuation()
    assert learned.rates[1] == rate
    assert learned.expect_calls(2) == (2 if rate == 500 else 1)
