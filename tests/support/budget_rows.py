"""Budgets, their members and calls under them, for tests of holds and settlements."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone

from conversations.agent.ports import Ending, Refused
from conversations.budgets.prices import load_price_list
from conversations.budgets.reconciliation import check_windows
from conversations.log.leases import Lease
from conversations.models import ApiResult, Budget, User
from tests.support import people_and_turns, stored_turns

PLENTY = 50_000_000


def worst(lease: Lease, max_tokens: int = 2_000) -> int:
    return load_price_list(stored_turns.MODEL, timezone.now()).worst(padded(lease), max_tokens)


def padded(lease: Lease) -> int:
    return people_and_turns.sending(lease).estimated_tokens * 125 // 100


def member(*groups: str, name: str = "ada") -> User:
    user = people_and_turns.person(name)
    user.groups.set([Group.objects.get_or_create(name=group)[0] for group in groups])
    return user


def site(limit: int, **fields: Any) -> Budget:
    return Budget.objects.create(scope="site", limit=limit, **fields)


def group(name: str, limit: int, **fields: Any) -> Budget:
    row, _ = Group.objects.get_or_create(name=name)
    return Budget.objects.create(scope="group", group=row, limit=limit, **fields)


def play(lease: Lease, ending: Ending | None = None) -> int:
    sent = people_and_turns.opened(lease)
    stored_turns.close(lease, sent.call, ending or people_and_turns.complete())
    return ApiResult.objects.get(call=sent.call).cost_micros


def refusal(lease: Lease) -> str:
    with pytest.raises(Refused) as refused:
        people_and_turns.opened(lease)
    assert refused.value.code == "budget"
    return refused.value.text


def clean() -> bool:
    return list(check_windows()) == []
