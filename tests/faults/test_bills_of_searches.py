"""The bill of random calls with web searches equals the ledger; a cut one is never below it.

Models of both tokenizers and price tiers, caches of both lifetimes, requests of all sizes, streams
cut, fallen silent or stopped at random. An exact row is the bill to the micro-dollar.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from agentweb.emulator import server
from agentweb.emulator.app import create_app
from agentweb.emulator.clock import VirtualClock
from agentweb.emulator.server import EmulatorServer
from conversations.budgets.prices import load_price_list
from conversations.db import run_db
from conversations.log.leases import Lease
from conversations.models import ApiResult, BudgetWindow
from conversations.toolbox.web_search import build_definition
from conversations.turns.billed_usage import IN_FLIGHT, TOKENS_PER_SECOND
from tests.faults.oracle import settled
from tests.faults.random_calls import MODELS, ApiClient
from tests.faults.talks import WORDS, Talk
from tests.support import people_and_turns

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
SEED, CALLS = 20_261_127, 120


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def emulator(clock: VirtualClock) -> Iterator[EmulatorServer]:
    with server.start(app=create_app(clock=clock)) as running:
        yield running


def started_turn() -> Lease:
    user = people_and_turns.person()
    for unit in ("money", "tokens"):
        people_and_turns.limited(user, 10**15, unit=unit)
    return people_and_turns.started_turn(user)


async def test_the_ledger_never_says_less_than_the_api_bills(
    emulator: EmulatorServer, clock: VirtualClock
) -> None:
    dice = Random(SEED)
    client = ApiClient(await run_db(started_turn), emulator.url, clock, dice)
    for number in range(CALLS):
        size = WORDS * dice.choice((1, 40, 400))
        talk = Talk(
            dice.choice(MODELS), dice.choice(("5m", "1h")), size, tools=(build_definition(),)
        )
        times, words = dice.choice((1, 2, 5, 6)), dice.choice((5, 300, 3_000))
        talk.say(f"Search the web {times} times, {words} words each, for tea {number}")
        name = dice.choice(("", "", "cut_after", "error_after", "hang_after", "went"))
        chosen = f"{name}:{dice.randrange(40)}" if name else ""
        is_ours = bool(name) and name != "went"
        emulator.emulator.ordered_faults[:] = [chosen] if is_ours else []
        await client.call(talk, chosen)
        clock.advance(dice.choice((1, 301, 3_601)))
    await client.close()
    await settled(emulator)
    await run_db(compare, emulator, client)


def compare(emulator: EmulatorServer, client: ApiClient) -> None:
    seen: Counter[str] = Counter()
    for row in ApiResult.objects.select_related("call").exclude(usage="{}"):
        bill = emulator.emulator.bills[row.request_id].cost_micros
        name = client.faults[row.call_id].partition(":")[0]
        seen[row.cost_basis, name] += 1
        if row.cost_basis == "exact":
            assert row.cost_micros == bill
        elif name != "went":
            # This server may have been writing still where the client left.
            assert bill <= row.cost_micros <= bill * 3 // 2 + cost_of_unseen(row), (row.pk, name)
        for held in row.call.reservations.select_related("window__budget"):
            assert find_used(row, held.window) <= held.amount
    assert min(seen[basis] for basis in (("exact", ""), ("estimated", "cut_after"))) > 5
    assert not BudgetWindow.objects.exclude(overrun=0).exists()


def find_used(row: ApiResult, window: BudgetWindow) -> int:
    if window.budget.unit == "money":
        return row.cost_micros
    counts = (row.input_tokens, row.output_tokens, row.cache_read_tokens, row.cache_write_tokens)
    return sum(count or 0 for count in counts)


def cost_of_unseen(row: ApiResult) -> int:
    """Return what tokens may cost that were written and not read."""
    milliseconds = row.duration_ms - (row.first_event_ms or 0)
    tokens = milliseconds * TOKENS_PER_SECOND // 1_000 + 1 + IN_FLIGHT
    prices = load_price_list(row.call.model, row.call.sent_at)
    return prices.worst(0, tokens)
