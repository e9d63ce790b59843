"""The bill of random calls equals the ledger to the micro-dollar, call by call.

CI makes 300 calls; the long run of 10,000 is

    AGENTWEB_TEST_BILLS=10000 manage.py test tests/faults/test_bills.py

and AGENTWEB_TEST_DATABASE=postgres runs it on PostgreSQL. The calls are seeded: caches of both
lifetimes on a clock that jumps, prompts in both tiers, models of both tokenizers, refusals,
retries, deadlines, summaries, streams cut between and inside events, and stops.

Every attempt is a call of its own. Exact rows have the final usage and equal the bill. Estimated
rows of streams that the server ended, or that fell silent, are never below it: both sides count
what was sent, by two implementations of one rule. Estimates are bounded, and counted separately:

- A request that was sent and got no event has no bill here; the ledger has its input and IN_FLIGHT
  tokens, at most what was held. Refused requests are free on both sides.
- A client that ends the stream: the ledger has what was read and IN_FLIGHT tokens for what may have
  been written besides, and TOKENS_PER_SECOND for the time of thinking. This server writes a whole
  answer at once, as no API does, so its bill can be higher where it was still writing.
- A compaction on demand that is cut. The API reports the tokens it read only at the end, so the
  ledger has the estimate of the request with its margin, which can still be below it.
"""

from __future__ import annotations

import faulthandler
import logging
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace
from random import Random

import pytest

from agentweb.emulator import server
from agentweb.emulator.app import create_app
from agentweb.emulator.clock import VirtualClock
from agentweb.emulator.prices import cost_micros
from agentweb.emulator.scenes import SCENES
from agentweb.emulator.server import EmulatorServer
from agentweb.emulator.state import Bill
from conversations.agent.ports import Head, Sending
from conversations.agent.tokenizer import NEWER, OLDER, find_family
from conversations.agent.usage import Usage, read_usage
from conversations.audit.verify import Tally, verify_everything
from conversations.budgets.prices import load_price_list
from conversations.context.view import wire
from conversations.db import run_db
from conversations.log.leases import Lease
from conversations.models import ApiCall, ApiResult, Budget, BudgetWindow, LedgerEntry
from conversations.turns import billed_usage
from conversations.turns.billed_usage import TOKENS_PER_SECOND
from conversations.turns.takeovers import take_over_turn
from tests.faults.oracle import settled
from tests.faults.random_calls import CUT, GIVEN_UP, IN_FLIGHT, NOTHING, REFUSED, ApiClient, fault
from tests.faults.talks import WORDS, Talk, scene
from tests.support import people_and_turns

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
MOST_CALLS_IN_CI = 300
CALLS = int(os.environ.get("AGENTWEB_TEST_BILLS") or MOST_CALLS_IN_CI)
SEED = int(os.environ.get("AGENTWEB_TEST_BILLS_SEED") or 20_261_121)
PERIODS = ("day", "month", "lifetime")
logger = logging.getLogger("tests.bills")


@pytest.fixture(scope="module")
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture(scope="module")
def emulator(clock: VirtualClock) -> Iterator[EmulatorServer]:
    with server.start(app=create_app(clock=clock, scenes=[scene, *SCENES])) as running:
        yield running


async def test_the_ledger_says_what_the_api_bills(
    emulator: EmulatorServer, clock: VirtualClock
) -> None:
    if CALLS > MOST_CALLS_IN_CI:
        # This test takes longer than the limit for one that hangs.
        faulthandler.cancel_dump_traceback_later()
    dice = Random(SEED)
    client = ApiClient(await run_db(started_turn), emulator.url, clock, dice)
    for number in range(CALLS):
        talk = client.talk()
        if dice.random() < 0.8 or not talk.messages:
            speak = talk.look if dice.random() < 0.1 else talk.say
            speak(f"Number {number}: show me a table. " + WORDS * dice.choice((0, 2, 40)))
        compacts = talk.compacts and dice.random() < 0.12
        chosen = fault(dice, compacts=compacts)
        is_ours = bool(chosen) and not chosen.startswith("went")
        emulator.emulator.ordered_faults[:] = [chosen] if is_ours else []
        await (client.compact if compacts else client.call)(talk, chosen)
        if dice.random() < 0.04:
            await client.summarise(talk)
        clock.advance(dice.choice((1, 1, 20, 200, 301, 3_000, 3_601)))
    await client.close()
    await settled(emulator)
    await run_db(compare, emulator, client)


async def test_a_call_whose_worker_died_is_never_cheaper_than_its_bill(
    emulator: EmulatorServer, clock: VirtualClock
) -> None:
    emulator.emulator.reset()
    emulator.emulator.ordered_faults[:] = ["hang_after:30"]
    lease = await run_db(started_turn)
    client = ApiClient(lease, emulator.url, clock, Random(SEED))
    talk = Talk("claude-sonnet-5-5", "5m", WORDS)
    talk.say("Number 1: show me a table. ")
    # The call stays open, as that of a killed worker does.
    ports = client.ports("", 1)
    messages = wire.encode(talk.messages)
    sent = await ports.calls.open(Sending("summary", talk.envelope(4_000), messages, 900, None, 1))
    async with aclosing(ports.model.stream(sent.body)) as stream:
        heard = 0
        async for item in stream:
            heard += 1 if isinstance(item, Head) else len(item.events)
            if heard >= 30:
                break
    await client.close()
    await settled(emulator)
    assert heard >= 30
    await run_db(take_over_turn, turn_id=lease.turn_id, everything=True)
    row = await run_db(ApiResult.objects.get)
    (bill,) = emulator.emulator.bills.values()
    assert (row.status, row.cost_basis) == ("lost", "estimated")
    assert row.cost_micros > bill.cost_micros > 0
    await run_db(check_money, row.cost_micros)


@pytest.mark.parametrize("chosen", ["", "cut_after:40"])
async def test_an_answer_made_in_one_country_costs_what_its_bill_says(
    emulator: EmulatorServer, clock: VirtualClock, chosen: str
) -> None:
    emulator.emulator.reset()
    emulator.emulator.ordered_faults[:] = [chosen] if chosen else []
    client = ApiClient(
        await run_db(started_turn), emulator.url, clock, Random(SEED), key="sk-a@acme/us"
    )
    talk = Talk("claude-sonnet-5-5", "5m", WORDS * 90)
    talk.say("Number 1: show me a table. ")
    await client.call(talk, chosen)
    await client.close()
    await settled(emulator)
    row = await run_db(ApiResult.objects.order_by("pk").first)
    bill = emulator.emulator.bills[row.request_id]
    plain = cost_micros("claude-sonnet-5-5", bill.iterations)
    assert '"inference_geo":"us"' in row.usage.replace(" ", "")
    above = row.cost_micros - bill.cost_micros
    assert bill.cost_micros > plain
    assert 0 <= above <= (await run_db(cost_of_unseen, row) if chosen else 0)


def started_turn() -> Lease:
    user = people_and_turns.person()
    for period in PERIODS:
        people_and_turns.limited(user, 10**15, period)
    return people_and_turns.started_turn(user)


def compare(emulator: EmulatorServer, client: ApiClient) -> None:
    bills = dict(emulator.emulator.bills)
    rows = list(ApiResult.objects.select_related("call").order_by("pk"))
    assert len(rows) >= CALLS
    seen: Counter[str] = Counter()
    hidden = 0
    for row in rows:
        name = client.faults.get(row.call_id, "").partition(":")[0]
        compacts = row.call_id in client.compactions
        kind, difference = check(row, bills.pop(row.request_id, None), name, compacts=compacts)
        seen[kind] += 1
        hidden += difference
    assert bills == {}
    paid = sum(row.cost_micros for row in rows)
    assert paid + hidden == emulator.emulator.billed_micros > 0
    check_money(paid)
    check_variety(rows, seen)
    logger.info("%s calls, %s micro-dollars, %s not to be known: %s", len(rows), paid, hidden, seen)


def check(row: ApiResult, bill: Bill | None, fault: str, *, compacts: bool) -> tuple[str, int]:
    """Compare a call with its bill; return its kind and the amount the ledger cannot know."""
    if bill is None:
        assert fault in (*NOTHING, *CUT), (row.pk, fault, row.error_message)
        if fault in REFUSED:
            assert (row.cost_micros, row.cost_basis, row.usage) == (0, "none", "{}"), row.pk
            return "refused", 0
        assert 0 < row.cost_micros <= row.call.reservations.first().amount, (row.pk, fault)
        assert (row.cost_basis, row.usage) == ("estimated", "{}"), (row.pk, fault)
        return "unanswered", -row.cost_micros
    if row.cost_basis == "exact":
        assert bill.complete
        assert row.cost_micros == bill.cost_micros, (row.pk, fault)
        return "compacted" if compacts else "exact", 0
    assert row.cost_basis == "estimated", (row.pk, fault)
    above = row.cost_micros - bill.cost_micros
    if compacts:
        assert 0 < row.cost_micros <= row.call.reservations.first().amount, (row.pk, fault)
        return "unsaid", -above
    assert above <= cost_of_unseen(row), (row.pk, fault)
    if fault in IN_FLIGHT:
        return "in flight", -above
    assert fault in (*CUT, *GIVEN_UP), (row.pk, fault)
    assert not bill.complete
    assert above >= 0, (row.pk, fault, row.usage, bill)
    return "cut" if fault in CUT else "given up", -above


def cost_of_unseen(row: ApiResult) -> int:
    """Return the most that a cut stream may cost above what it showed."""
    milliseconds = row.duration_ms - (row.first_event_ms or 0)
    tokens = milliseconds * TOKENS_PER_SECOND // 1_000 + 1 + billed_usage.IN_FLIGHT
    prices = load_price_list(row.call.model, row.call.sent_at)
    return prices.cost(replace(announced(row), output=tokens))


def check_money(paid: int) -> None:
    """Check that every budget window equals the ledger, and that nothing is held."""
    for budget in Budget.objects.all():
        windows = BudgetWindow.objects.filter(budget=budget)
        assert all(window.held == 0 for window in windows)
        assert paid == sum(row.spent + row.overrun for row in windows)
        settled = LedgerEntry.objects.filter(window__budget=budget, kind="settle")
        assert paid == sum(settled.values_list("amount", flat=True))
    assert Budget.objects.count() == len(PERIODS)
    assert not ApiCall.objects.filter(result=None).exists()
    assert list(verify_everything(Tally())) == []


def check_variety(rows: list[ApiResult], seen: Counter[str]) -> None:
    """Check that the run covered every kind of call."""
    assert set(seen) == {
        "refused", "unanswered", "exact", "compacted", "unsaid", "in flight", "cut", "given up"
    }  # fmt: skip
    kinds = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
    assert all(any(getattr(row, kind) for row in rows) for kind in kinds)
    cut = [row for row in rows if row.cost_basis == "estimated"]
    for family in (OLDER, NEWER):
        ours = [row for row in cut if find_family(row.call.model) is family]
        assert any(row.cost_micros > cost_as_announced(row) for row in ours)
    sizes = [announced(row).context for row in rows if "haiku-5" in row.call.model]
    assert min(sizes) < 100_000 < max(sizes)
    assert any(announced(row).cache_write_1h for row in rows)
    assert any(announced(row).cache_write_5m for row in rows)


def announced(row: ApiResult) -> Usage:
    return read_usage(wire.decode(row.usage))


def cost_as_announced(row: ApiResult) -> int:
    return load_price_list(row.call.model, row.call.sent_at).cost(announced(row))
