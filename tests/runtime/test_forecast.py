"""What the composer says of the next message is what its turn then does and costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations.budgets.notices import Limits, find_conversation_limits
from conversations.context.steps.kinds import ASKS_MODEL
from conversations.db import run_db
from conversations.models import ApiResult, Conversation, Draft, ModelPrice, Turn
from conversations.reductions.conversation_settings import change_model
from conversations.reductions.in_full import choose_in_full
from conversations.runtime.supervisor import Supervisor
from conversations.toolbox.toolset import offers_search
from conversations.transcript.meter import read_meter
from conversations.transcript.next_message import NextMessage
from conversations.turns import turns
from tests.support.running_turns import ended, queue, run, supervising, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
LONG = "Say hello. " + "These words only fill the room. " * 120
#: The settings of a policy, and what it does before the first message under it.
POLICIES = {
    "rebuild": (
        {"POLICY": "rebuild", "COMPACTION_THRESHOLD_TOKENS": 6_000, "SUMMARY_MAX_TOKENS": 512},
        "summarise",
    ),
    "gated-trim": (
        {"POLICY": "gated-trim", "MAX_CONVERSATION_BYTES": 20_000, "TRIM_THRESHOLD_PERCENT": 0},
        "trim",
    ),
    "adaptive": ({"POLICY": "adaptive"}, "nothing"),
}
ACTIONS = {"compaction": "compact", "shrink": "compact", "trim": "trim"}


@pytest.fixture
def emulator(settings: Any) -> Iterator[EmulatorServer]:
    with server.start(pace=0, record=True) as running:
        settings.ANTHROPIC_BASE_URL = running.url
        yield running


def forecast(turn: Turn) -> NextMessage:
    conversation = Conversation.objects.get(pk=turn.conversation_id)
    found = read_meter(conversation, has_next=True).next
    assert found is not None
    return found


def limits(turn: Turn) -> Limits:
    """Return what the page shows of budgets."""
    conversation = Conversation.objects.get(pk=turn.conversation_id)
    meter = read_meter(conversation, has_next=True)
    return find_conversation_limits(
        conversation, searches=offers_search, tokens=lambda: meter.sent_tokens
    )


def done(turn: Turn) -> str:
    """Give the first thing done to the context in a turn."""
    rows = turn.transformations.filter(actor=None).order_by("seq").values_list("kind", flat=True)
    kinds = [kind for kind in rows if kind in ACTIONS or kind in ASKS_MODEL]
    if any(kind in ASKS_MODEL for kind in kinds):
        return "summarise"
    return ACTIONS[kinds[0]] if kinds else "nothing"


def paid(turn: Turn) -> int:
    results = ApiResult.objects.filter(call__turn=turn, call__purpose="reply").order_by("pk")
    return sum(results.values_list("cost_micros", flat=True)[:1])


async def prepared(supervisor: Supervisor, settings: Any, name: str) -> Turn:
    """Talk at length while nothing is reduced; only then the policy comes into force."""
    settings.AGENTWEB_POLICY = "off"
    turn = await run(supervisor, LONG)
    for _ in range(6):
        turn = await run(supervisor, LONG, turn.conversation)
    # So dear are the calls to come that a summary pays back within those expected.
    await ModelPrice.objects.filter(kind="cache_read").aupdate(micros_per_million=2_000_000)
    for number, value in POLICIES[name][0].items():
        setattr(settings, f"AGENTWEB_{number}", value)
    return turn


async def stopped(supervisor: Supervisor, turn: Turn) -> Turn:
    """Stop the next answer when it has begun."""
    turn = await queue("Answer in 900 words emulator:pace=0.01", turn.conversation)
    supervisor.wake(turn.pk)
    await until(lambda: Draft.objects.exclude(text="").exists())
    await run_db(turns.request_stop, turn=turn)
    supervisor.stop(turn.pk)
    return await ended(turn)


@pytest.mark.parametrize("name", POLICIES)
async def test_what_was_said_before_each_message_is_what_its_turn_did(
    emulator: EmulatorServer, settings: Any, name: str
) -> None:
    met: list[str] = []
    first: Turn | None = None
    async with supervising() as supervisor:
        turn = await prepared(supervisor, settings, name)
        for _ in range(4):
            said = await run_db(forecast, turn)
            turn = await run(supervisor, "Say hello.", turn.conversation)
            assert turn.state == "done"
            first = first or turn
            met.append(said.now.action)
            if said.now.is_certain:
                assert await run_db(done, turn) == said.now.action
            if said.now.action == "nothing":
                cost = await run_db(paid, turn)
                assert said.now.full == said.now.reduced
                assert abs((said.now.full or 0) - cost) * 4 <= cost
    assert met[0] == await run_db(done, first or turn) == POLICIES[name][1]
    assert "nothing" in met


@pytest.mark.parametrize("is_stopped", [False, True], ids=["another model", "a stopped answer"])
async def test_what_is_said_without_a_report_of_the_model_is_what_its_turn_does(
    emulator: EmulatorServer, settings: Any, is_stopped: bool
) -> None:
    async with supervising() as supervisor:
        turn = await prepared(supervisor, settings, "gated-trim")
        settings.AGENTWEB_TRIM_THRESHOLD_PERCENT = 60
        assert (await run_db(forecast, turn)).now.action == "nothing"
        if is_stopped:
            turn = await stopped(supervisor, turn)
        else:
            chosen = {"conversation_id": turn.conversation_id, "model": "claude-opus-5-5"}
            await run_db(change_model, **chosen)
        said = (await run_db(forecast, turn)).now
        turn = await run(supervisor, "Say hello.", turn.conversation)
        assert (said.action, said.is_certain) == ("trim", True)
        assert await run_db(done, turn) == "trim"


async def test_in_full_this_once_nothing_is_reduced_and_then_again(
    emulator: EmulatorServer, settings: Any
) -> None:
    async with supervising() as supervisor:
        turn = await prepared(supervisor, settings, "gated-trim")
        assert (await run_db(forecast, turn)).now.action == "trim"
        chosen = {"conversation_id": turn.conversation_id, "actor_id": turn.conversation.owner_id}
        await run_db(choose_in_full, choice="full_once", **chosen)
        said = await run_db(forecast, turn)
        assert (said.now.action, said.is_full_once) == ("nothing", True)
        for expected in ("nothing", "trim"):
            turn = await run(supervisor, "Say hello.", turn.conversation)
            assert await run_db(done, turn) == expected


async def test_what_is_said_not_to_be_admitted_is_not_admitted(
    emulator: EmulatorServer, settings: Any
) -> None:
    async with supervising() as supervisor:
        turn = await prepared(supervisor, settings, "gated-trim")
        settings.AGENTWEB_MAX_TURN_MICROS = 1
        refused = (await run_db(limits, turn)).turn
        assert refused is not None
        for cap, is_admitted in ((refused.cost * 9 // 10, False), (refused.cost * 11 // 10, True)):
            settings.AGENTWEB_MAX_TURN_MICROS = cap
            assert ((await run_db(limits, turn)).turn is None) is is_admitted
            turn = await run(supervisor, "Say hello.", turn.conversation)
            assert (turn.error_code != "turn_money") is is_admitted
