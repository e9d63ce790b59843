"""Every cost is computed again from the usage and the price rows that its result names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from conversations.agent.ports import Ending, ModelFailed
from conversations.agent.usage import FACTORS, read_usage
from conversations.audit.verify import Problem, Tally, verify_everything
from conversations.context.view import wire
from conversations.log.triggers import list_guard_verbs
from conversations.models import ApiResult, ModelPrice
from conversations.turns import calls
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db
FIGURES = {
    "input_tokens": 1_000, "output_tokens": 90, "cache_read_input_tokens": 700,
    "cache_creation_input_tokens": 50,
}  # fmt: skip
PARTS = [
    {"type": "compaction", "input_tokens": 500, "output_tokens": 30},
    {"type": "message", **FIGURES},
]
USAGES: list[dict[str, Any]] = [
    FIGURES,
    FIGURES | {"iterations": PARTS},
    FIGURES | {"message_start": {"input_tokens": 80}},
    FIGURES | {"input_tokens": -1},
    *(FIGURES | {factor.field: factor.value} for factor in FACTORS),
]


@pytest.fixture
def record() -> None:
    """Results of every basis, exact ones with every factor of the price."""
    lease = people_and_turns.started_turn()
    cut = ModelFailed("cut", "The connection was cut.", may_cost=True)
    endings = [Ending("complete", read_usage(said), "end_turn") for said in USAGES]
    endings += [
        Ending("truncated", read_usage(FIGURES), received_tokens=300, failure=cut),
        Ending("error", failure=cut),
        Ending("error", failure=ModelFailed("overloaded", "Busy", 529)),
    ]
    for ending in endings:
        stored_turns.close(lease, people_and_turns.opened(lease).call, ending)


def verified() -> tuple[Tally, list[Problem]]:
    tally = Tally()
    return tally, list(verify_everything(tally))


def unguard() -> None:
    table = ApiResult._meta.db_table
    where = f' ON "{table}"' if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        for verb in list_guard_verbs(ApiResult):
            cursor.execute(f'DROP TRIGGER "{table}_keep_{verb}"{where}')


@contextmanager
def undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.mark.usefixtures("record")
def test_every_cost_is_computed_again_whatever_it_is_based_on() -> None:
    assert verified() == (Tally(conversations=1, verified=len(USAGES) + 3), [])
    bases = set(ApiResult.objects.values_list("cost_basis", flat=True))
    assert bases == {"exact", "clamped", "estimated", "none"}
    free = ApiResult.objects.filter(bill="")
    assert set(free.values_list("cost_basis", "cost_micros")) == {("none", 0)}


@pytest.mark.usefixtures("record")
def test_a_changed_price_is_found_by_the_costs_that_it_made() -> None:
    rows = ModelPrice.objects.filter(model=stored_turns.MODEL)
    later = ApiResult.objects.latest("pk").ended_at + timedelta(hours=1)
    changes: list[Callable[[Any], Any]] = [
        lambda row: row.update(micros_per_million=row.get().micros_per_million * 2),
        lambda row: row.update(effective_from=later),
        lambda row: row.update(effective_to=later - timedelta(days=1)),
        lambda row: row.update(above_tokens=10**9),
        lambda row: row.delete(),
    ]
    for kind in ("input", "output", "cache_read", "cache_write_5m"):
        for change in changes:
            with undone():
                price = rows.filter(kind=kind, above_tokens=0)
                assert price.exists()
                change(price)
                tables = {found.table for found in verified()[1]}
                assert tables - {"modelprice"} == {"apiresult"}, kind


@pytest.mark.usefixtures("record")
def test_a_changed_result_does_not_fit_its_bill_even_if_its_chain_does() -> None:
    unguard()
    for row in ApiResult.objects.exclude(bill=""):
        bill = wire.decode(row.bill)
        more = wire.encode(bill | {"parts": [[9, *bill["parts"][0][1:]]]})
        changes: list[dict[str, Any]] = [
            {"cost_micros": row.cost_micros + 1}, {"bill": more}, {"bill": "no bill"},
            {"bill": wire.encode(bill | {"prices": []})},
            {"bill": wire.encode(bill | {"prices": 7})},
        ]  # fmt: skip
        if row.cost_basis == "exact":
            changes.append({"usage": '{"input_tokens":1}'})
        for change in changes:
            with undone():
                ApiResult.objects.filter(pk=row.pk).update(**change)
                whats = [found.what for found in verified()[1] if found.id == str(row.pk)]
                # Its link, and by itself its cost.
                assert any("link" not in what for what in whats), change


def test_a_result_of_before_bills_is_counted_and_no_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calls, "write_bill", lambda *_: "")
    lease = people_and_turns.started_turn()
    stored_turns.close(lease, people_and_turns.opened(lease).call, people_and_turns.complete())
    tally, problems = verified()
    assert problems == []
    assert tally.unnamed == 1
    assert str(tally).endswith("chain intact, prices not named by 1 result")
