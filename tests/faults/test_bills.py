"""Random calls through the door and the services: the ledger says what the API bills.

Where the final figures were announced the two agree to the micro-dollar. Of a stream that ended
before, the API's bill here is that of the last figures it announced, and the ledger adds an
estimate of the text that came: never less, and by nothing where nothing came.
CI makes 300 calls; AGENTWEB_TEST_BILLS says how many.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest

from agentweb.emulator import server
from agentweb.emulator.app import create_app
from agentweb.emulator.clock import VirtualClock
from agentweb.emulator.server import EmulatorServer
from agentweb.emulator.state import Bill
from conversations.adapters import TurnCalls
from conversations.attempt import attempt
from conversations.claude import Claude, Deadlines
from conversations.context import wire
from conversations.context.envelope import Envelope, envelope
from conversations.context.estimate import text_tokens
from conversations.db import db
from conversations.models import ApiResult, BudgetWindow, LedgerEntry
from conversations.ports import Head, ModelFailed, Piece, Ports, Sending
from conversations.queries.prices import price_list
from conversations.services.leases import Lease
from conversations.switch import Stopped, Switch
from conversations.usage import Usage, usage_from
from tests import work
from tests.runner.twins import TwinLog, TwinStage, TwinTools

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
CALLS = int(os.environ.get("AGENTWEB_TEST_BILLS") or 300)
MODELS = ("claude-sonnet-5-5", "claude-haiku-5-5", "claude-opus-5-5", "claude-sonnet-4-6")
REFUSED = ("overloaded", "api_error", "bad_request", "rate_limited:0", "close", "html200")
WHOLE = ("refusal", "refusal_partial", "refusal_null", "max_tokens", "window", "empty", "nul",
         "end_before_stop", "duplicate_stop", "unknown_event", "max_tokens_tool")  # fmt: skip
CUT = ("error_first", "error_after", "cut_after", "reset_after", "end_after", "hang_after")
WORDS = "The quick brown fox jumps over the lazy dog and looks for the number of its order. "


@pytest.fixture(scope="module")
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture(scope="module")
def seller(clock: VirtualClock) -> Iterator[EmulatorServer]:
    with server.start(app=create_app(clock=clock)) as running:
        yield running


@dataclass
class Talk:
    """A conversation that grows, on one model with one lifetime of its cache."""

    model: str
    ttl: str
    system: str
    messages: list[dict[str, Any]] = field(default_factory=list)

    def envelope(self, max_tokens: int) -> Envelope:
        thinks = {"type": "adaptive"} if "5-5" in self.model else None
        made = envelope(
            model=self.model, max_tokens=max_tokens, system=self.system, thinking=thinks
        )
        mark = {"type": "ephemeral", "ttl": self.ttl}
        kept = tuple(pair for pair in made.parameters if pair[0] != "cache_control")
        return replace(made, parameters=(*kept, ("cache_control", mark)))

    def say(self, text: str) -> None:
        if self.messages:
            self.messages.append({"role": "assistant", "content": "I see."})
        self.messages.append({"role": "user", "content": text})


@dataclass
class Buyer:
    """Makes calls as a turn does."""

    lease: Lease
    claude: Claude
    dice: Random
    talks: list[Talk] = field(default_factory=list)

    def talk(self) -> Talk:
        dice = self.dice
        if not self.talks or dice.random() < 0.08:
            large = 1 if dice.random() > 0.15 else dice.choice((60, 120))
            system = f"Number {dice.random()}. " + WORDS * dice.choice((1, 60, 90)) * large
            self.talks.append(Talk(dice.choice(MODELS), dice.choice(("5m", "5m", "1h")), system))
        return dice.choice(self.talks[-6:])

    async def call(self, talk: Talk, chosen: str) -> None:
        """Make a call; once more, a few times, where the runner would."""
        ports = self.ports(chosen)
        made = talk.envelope(self.dice.choice((40, 400, 4_000)))
        messages = wire.encode(talk.messages)
        size = made.overhead + text_tokens(messages)
        for number in range(1, 4):
            sending = Sending("summary", made, messages, size, None, number)
            sent = await ports.calls.open(sending)
            try:
                await attempt(ports, sent, shows=False)
            except Stopped:
                return
            except ModelFailed as failure:
                if not failure.may_retry:
                    return
            else:
                return

    def ports(self, chosen: str) -> Ports:
        calls, switch = TurnCalls(self.lease, self.claude), Switch()
        name, _, count = chosen.partition(":")
        model = Stopping(calls, switch, int(count)) if name == "hang_after" else calls
        chance = self.dice.random
        return Ports(
            TwinLog(), calls, model, TwinTools(), TwinStage(), switch, asyncio.sleep, chance
        )


@dataclass
class Stopping:
    """The Model port of somebody who stops an answer after so many deltas."""

    calls: TurnCalls
    switch: Switch
    left: int

    async def stream(self, body: str) -> AsyncGenerator[Head | Piece, None]:
        async with aclosing(self.calls.stream(body)) as stream:
            async for item in stream:
                yield item
                if isinstance(item, Piece):
                    self.left -= item.event["type"] == "content_block_delta"
                    if self.left <= 0:
                        asyncio.get_running_loop().call_soon(self.switch.request, "user")


def fault(dice: Random) -> str:
    """Choose what goes wrong, if anything does."""
    chance = dice.random()
    if chance < 0.10:
        return dice.choice(REFUSED)
    if chance < 0.22:
        return dice.choice(WHOLE)
    if chance < 0.34:
        name = dice.choice(CUT)
        return name if name == "error_first" else f"{name}:{dice.choice((0, 0, 3, 12, 40))}"
    return ""


async def test_the_ledger_says_what_the_api_bills(
    seller: EmulatorServer, clock: VirtualClock
) -> None:
    dice = Random(20_261_121)
    lease = await db(begun)
    claude = Claude(
        api_key="sk-test", base_url=seller.url, deadlines=Deadlines(60, 60, 60), now=clock.now
    )
    buyer = Buyer(lease, claude, dice)
    for number in range(CALLS):
        talk = buyer.talk()
        if dice.random() < 0.8 or not talk.messages:
            talk.say(f"Number {number}: show me a table. " + WORDS * dice.choice((0, 2, 40)))
        chosen = fault(dice)
        seller.emulator.ordered_faults[:] = [chosen] if chosen else []
        await buyer.call(talk, chosen)
        clock.advance(dice.choice((1, 1, 20, 200, 301, 3_000, 3_601)))
    await claude.close()
    await db(compare, seller)


def begun() -> Lease:
    user = work.person()
    work.limited(user, 10**15, "lifetime")
    return work.begun(user)


def compare(seller: EmulatorServer) -> None:
    bills = dict(seller.emulator.bills)
    rows = list(ApiResult.objects.select_related("call").order_by("pk"))
    assert len(rows) >= CALLS
    surplus = sum(check(row, bills.pop(row.request_id, None)) for row in rows)
    assert bills == {}
    paid = sum(row.cost_micros for row in rows)
    assert paid - surplus == seller.emulator.billed_micros > 0
    window = BudgetWindow.objects.get()
    assert window.held_micros == 0
    assert window.spent_micros + window.overrun_micros == paid
    entries = LedgerEntry.objects.filter(kind="settle").values_list("micros", flat=True)
    assert sum(entries) == paid
    bases = {row.cost_basis for row in rows}
    assert bases == {"exact", "estimated", "none"}
    kinds = {"input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens"}
    assert all(any(getattr(row, kind) for row in rows) for kind in kinds)
    sizes = [announced(row).context for row in rows if "haiku" in row.call.model]
    assert min(sizes) < 100_000 < max(sizes)
    assert any(announced(row).cache_write_1h for row in rows)
    assert any(announced(row).cache_write_5m for row in rows)


def announced(row: ApiResult) -> Usage:
    return usage_from(wire.decode(row.usage))


def check(row: ApiResult, bill: Bill | None) -> int:
    """Compare one call with its bill, and give what the ledger estimates above it."""
    if bill is None:
        assert (row.cost_micros, row.cost_basis) == (0, "none")
        return 0
    cost = price_list(row.call.model, row.call.sent_at).cost(announced(row))
    assert cost == bill.cost_micros
    if row.cost_basis == "exact":
        assert bill.complete
        assert row.cost_micros == cost
    assert row.cost_micros >= cost
    return row.cost_micros - cost
