"""Turns that live are found by their own index, however many have ended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from conversations.turns import prompts, takeovers, worker_queue
from tests.support.stored_turns import played

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.only_database("sqlite", "PostgreSQL looks at the values, too"),
]
LONG = timedelta(hours=1)


@pytest.mark.parametrize(
    "ask",
    [
        takeovers.list_claimable_turns, takeovers.list_expired_turns,
        lambda: worker_queue.count_stuck_turns(waited=LONG, silent=LONG),
        lambda: prompts.demand_slot(played("bea").conversation),
    ],
    ids=["claimable", "expired", "stuck", "slot"],
)  # fmt: skip
def test_live_turns_are_read_from_their_index(ask: Callable[[], object]) -> None:
    played("ada")
    plans: list[str] = []

    def explain(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        # With its parameters, as it runs: with them written out SQLite would use more indexes.
        if sql.startswith("SELECT") and '"conversations_turn"."state" IN' in sql:
            rows = connection.connection.execute(
                f"EXPLAIN QUERY PLAN {sql}".replace("%s", "?"), params
            )
            plans.extend(row[-1] for row in rows if "_turn" in row[-1])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explain):
        ask()
    assert plans
    assert all("turn_live_lease" in step or "one_live_turn" in step for step in plans), plans
