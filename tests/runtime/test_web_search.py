"""Searches of the web by whole turns: billed to the cent, stored, sent back, shown with sources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations.context.view import wire
from conversations.context.view.envelope import count_searches
from conversations.db import run_db
from conversations.inspector.call_index import read_call_index
from conversations.live.hub import hub
from conversations.models import (
    ApiCall,
    ApiResult,
    BudgetWindow,
    Message,
    Transformation,
    Turn,
    WebSearch,
)
from conversations.toolbox.tool_access import choose_web_search
from conversations.transcript import transcript
from conversations.transcript.meter import read_meter
from conversations.transcript.shapes import Round
from tests.support import people_and_turns
from tests.support.running_turns import ended, is_valid, queue, run, supervising, unrecorded

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.fixture
def emulator(settings: Any) -> Iterator[EmulatorServer]:
    with server.start(pace=0, record=True) as running:
        settings.ANTHROPIC_BASE_URL = running.url
        yield running
    assert hub._topics == {}


async def search(supervisor: Any, text: str) -> Turn:
    """Ask in a conversation that searches the web."""
    turn = await queue(text)
    await run_db(choose_web_search, conversation_id=turn.conversation_id, choice=WebSearch.ALONE)
    supervisor.wake(turn.pk)
    return await ended(turn)


async def accounted(emulator: EmulatorServer) -> None:
    """Every request is rebuilt byte for byte, and the bill is the emulator's to the cent."""
    assert await run_db(unrecorded, emulator) == []
    assert await run_db(lambda: BudgetWindow.objects.filter(held__gt=0).count()) == 0
    costs = await run_db(lambda: sum(ApiResult.objects.values_list("cost_micros", flat=True)))
    assert costs == emulator.emulator.billed_micros > 0


def rounds(turn: Turn) -> tuple[Round, ...]:
    return transcript.read_turn(turn.conversation, turn.number).rounds


def kinds(turn: Turn) -> list[list[str]]:
    rows = Message.objects.filter(turn=turn, kind="answer").order_by("seq")
    return [[block["type"] for block in wire.decode(row.content)] for row in rows]


async def test_a_search_is_billed_shown_and_sent_back(emulator: EmulatorServer) -> None:
    async with supervising() as supervisor:
        turn = await search(supervisor, "Search the web for green tea")
        again = await run(supervisor, "Thanks, and now say hello", turn.conversation)
    assert (turn.state, turn.finish_reason, again.state) == ("done", "end_turn", "done")
    (found,) = await run_db(rounds, turn)
    (card,) = found.tools
    assert (card.name, card.brief, card.state) == ("web_search", "green tea", "ok")
    assert card.output == "All about green tea\nhttps://pages.example/green-tea"
    (source,) = found.sources
    assert (source.number, source.host) == (1, "pages.example")
    assert source.quote == "Everything about green tea."
    assert "[1]" in found.html
    await run_db(is_valid, turn.conversation)
    await accounted(emulator)


async def test_a_turn_that_pauses_goes_on(emulator: EmulatorServer, settings: Any) -> None:
    settings.AGENTWEB_WEB_SEARCH_USES = 30
    async with supervising() as supervisor:
        turn = await search(supervisor, "Search the web 13 times for tea")
    assert (turn.state, turn.finish_reason) == ("done", "end_turn")
    stops = await run_db(lambda: list(ApiResult.objects.values_list("stop_reason", flat=True)))
    assert sorted(stops) == ["end_turn", "pause_turn"]
    found = await run_db(kinds, turn)
    # The call in the tenth round is open as the turn pauses; its result is the next to come.
    assert [kind.count("web_search_tool_result") for kind in found] == [9, 4]
    await accounted(emulator)


async def test_searches_beyond_the_limit_are_said_and_not_billed(
    emulator: EmulatorServer, settings: Any
) -> None:
    settings.AGENTWEB_WEB_SEARCH_USES = 2
    async with supervising() as supervisor:
        turn = await search(supervisor, "Search the web 4 times for tea")
    (found,) = await run_db(rounds, turn)
    assert [card.is_error for card in found.tools] == [False, False, True, True]
    assert found.tools[-1].output.startswith("Not searched: this answer has used up")
    await accounted(emulator)


async def test_long_results_are_reduced_and_the_requests_stay_legal(
    emulator: EmulatorServer, settings: Any
) -> None:
    settings.AGENTWEB_POLICY = "gated-trim"
    settings.AGENTWEB_MAX_CONVERSATION_BYTES = 300_000
    settings.AGENTWEB_TRIM_THRESHOLD_PERCENT = 1
    async with supervising() as supervisor:
        turn = await search(supervisor, "Search the web 3 times, 5000 words each, for tea")
        for number in range(3):
            text = f"Search the web 3 times, 5000 words each, for tea {number}"
            later = await run(supervisor, text, turn.conversation)
            assert (later.state, later.error_code) == ("done", "")
    conversation = turn.conversation
    assert await run_db(lambda: conversation.transformations.filter(outcome="applied").count())
    calls = await run_db(ApiCall.objects.count)
    assert calls == len(await run_db(lambda: list(ApiResult.objects.filter(status="complete"))))
    await run_db(is_valid, conversation)
    await accounted(emulator)


async def test_the_meter_shows_the_context_and_not_the_sum_over_the_rounds(
    emulator: EmulatorServer, settings: Any
) -> None:
    settings.AGENTWEB_WEB_SEARCH_USES = 30
    async with supervising() as supervisor:
        turn = await search(supervisor, "Search the web 8 times, 500 words each, for tea")
        meter = await run_db(read_meter, turn.conversation)
        index = await run_db(read_call_index, turn.conversation)
        await run(supervisor, "Thanks, and now say hello", turn.conversation)
    first, second = (await run_db(read_call_index, turn.conversation)).calls[-2:]
    billed, began, size = first.billed_in, first.tokens_in, second.tokens_in
    assert billed is not None
    assert began is not None
    assert size is not None
    # The next request holds the answer, so the first began far below it, and the bill far above.
    assert 4 * began < size < billed // 2
    assert index.calls[-1] == first
    assert meter.source == "estimated"
    assert abs(meter.tokens - size) * 100 < size * 5
    await accounted(emulator)


async def test_an_answer_that_is_cut_behind_its_searches_is_never_billed_below_the_api(
    emulator: EmulatorServer,
) -> None:
    text = "Search the web 3 times, 500 words each, for tea emulator:fault=cut_after:32"
    async with supervising() as supervisor:
        turn = await search(supervisor, text)
    assert (turn.state, turn.error_code) == ("failed", "cut")
    (row,) = await run_db(lambda: list(ApiResult.objects.all()))
    bill = emulator.emulator.billed_micros
    assert row.cost_basis == "estimated"
    # All three searches had been made; their fees alone are not the bill.
    assert bill > 3 * 10_000 + 5_000
    assert bill <= row.cost_micros <= bill * 5 // 4
    await run_db(is_valid, turn.conversation)


async def test_a_nearly_used_up_budget_offers_one_search_and_no_request_is_refused(
    emulator: EmulatorServer, settings: Any
) -> None:
    settings.AGENTWEB_TITLE_MODEL = "off"
    async with supervising() as supervisor:
        turn = await search(supervisor, "What time is it in Tokyo?")
        await run_db(lambda: people_and_turns.limited(turn.conversation.owner, 260_000))
        for place in ("London", "Paris", "Rome"):
            later = await run(supervisor, f"What time is it in {place}?", turn.conversation)
            assert (later.state, later.error_code) == ("done", "")
    statuses = await run_db(lambda: set(ApiResult.objects.values_list("http_status", flat=True)))
    assert statuses == {200}
    sent = [row.body for row in emulator.emulator.log if row.path == "/v1/messages"]
    offered = [count_searches(wire.decode(body.decode())) for body in sent]
    assert offered == sorted(offered, reverse=True)
    assert set(offered) == {5, 1}
    # The thinking that was signed over the tools of before is left out once, and on record.
    changed = await run_db(lambda: list(Transformation.objects.values_list("kind", flat=True)))
    assert changed == ["rebind"]
    await accounted(emulator)
