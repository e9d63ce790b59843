"""Another model goes on where the chosen one declines: shown, billed, recorded, verified."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations.agent.finish import LEFT_OUT
from conversations.agent.usage import read_usage
from conversations.budgets.prices import load_price_list
from conversations.context.view import wire
from conversations.db import run_db
from conversations.inspector.call_index import read_call_index
from conversations.models import ApiCall, ApiModel, ApiResult, Conversation, ModelPrice, Turn
from conversations.transcript import transcript
from conversations.transcript.shapes import Fallback
from conversations.transfer.exports import EXPORT_FORMATS
from conversations.turns.resume import load_progress
from tests.support import stored_turns
from tests.support.running_turns import accounted, answer_text, ended, is_valid, queue, supervising
from tests.web.pages import client_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
OTHER = "claude-opus-4-8"


@pytest.fixture
def emulator(settings: Any) -> Iterator[EmulatorServer]:
    with server.start(pace=0, record=True) as running:
        settings.ANTHROPIC_BASE_URL = running.url
        settings.AGENTWEB_TITLE_MODEL = "off"
        yield running


def declining(fault: str, model: str = stored_turns.MODEL) -> str:
    """Put a model into the catalogue that declines every answer."""
    name = f"{model}+{fault}"
    row = ApiModel.objects.get(pk=model)
    row.pk = name
    row.save(force_insert=True)
    for price in ModelPrice.objects.filter(model=model):
        price.pk, price.model_id = None, name
        price.save(force_insert=True)
    return name


async def run_with(model: str, *texts: str) -> Turn:
    """Run turns of one conversation with this model; the last one is returned."""
    turn = await queue(texts[0])
    chat = turn.conversation
    await run_db(lambda: Conversation.objects.filter(pk=chat.pk).update(model=model))
    async with supervising() as supervisor:
        supervisor.wake(turn.pk)
        turn = await ended(turn)
        for text in texts[1:]:
            turn = await queue(text, chat)
            supervisor.wake(turn.pk)
            turn = await ended(turn)
    return turn


def verify() -> str:
    found = StringIO()
    call_command("verify", stdout=found)
    return found.getvalue()


def demand_bill() -> None:
    """Check that each call costs what its own model costs."""
    for result in ApiResult.objects.select_related("call"):
        usage = read_usage(wire.decode(result.usage))
        prices = load_price_list(result.call.model, result.call.sent_at)
        assert result.cost_micros == prices.cost(usage)


@pytest.mark.parametrize("fault", ["refusal", "refusal_null", "refusal_partial"])
async def test_the_turn_goes_on_with_the_model_that_is_named(
    emulator: EmulatorServer, settings: Any, fault: str
) -> None:
    settings.AGENTWEB_FALLBACK_MODEL = OTHER
    model = await run_db(declining, fault)
    turn = await run_with(model, "What time is it in Tokyo?", "And now?")
    assert (turn.state, turn.finish_reason) == ("done", "end_turn")
    sent = [json.loads(r.body) for r in emulator.emulator.log if r.path == "/v1/messages"]
    assert {body["model"] for body in sent} == {model, OTHER}
    assert "Tokyo" in json.dumps(sent[1]["messages"])
    assert "0 mismatches" in await run_db(verify)
    await run_db(demand_bill)
    await run_db(is_valid, turn.conversation)
    await accounted(emulator)


async def test_people_see_who_answered_and_who_declined(
    emulator: EmulatorServer, settings: Any
) -> None:
    settings.AGENTWEB_FALLBACK_MODEL = OTHER
    turn = await run_with(await run_db(declining, "refusal_partial"), "Hello")

    def look() -> None:
        chat = Conversation.objects.get(pk=turn.conversation_id)
        first, second = transcript.read_turn(chat, 1).rounds
        name = f"{stored_turns.MODEL}+refusal_partial"
        assert (first.fallback, second.fallback) == (None, Fallback("Opus 4.8", name))
        assert transcript.read_round(chat, 1, 2).fallback == second.fallback
        assert transcript.read_round(chat, 1, 1).fallback is None
        words = f"Answered by Opus 4.8, because {name} declined."
        client = client_of(chat.owner)
        assert words in read(client, f"/c/{chat.public_id}/")
        assert f"Opus 4.8, because {name} declined" in read(client, f"/c/{chat.public_id}/inspect/")
        assert "declined to answer" in read(client, f"/c/{chat.public_id}/inspect/calls/2/")
        assert load_progress(turn.pk).declined == first.seq
        assert [call.declined for call in read_call_index(chat).calls] == ["", name]
        exported = "".join(EXPORT_FORMATS["html"].write(chat, with_events=False))
        assert words in " ".join(exported.split())

    await run_db(look)


def read(client: Client, path: str) -> str:
    return " ".join(client.get(path).content.decode().split())


async def test_a_second_refusal_ends_the_turn_and_a_next_message_is_answered_in_the_same_way(
    emulator: EmulatorServer, settings: Any
) -> None:
    settings.AGENTWEB_FALLBACK_MODEL = await run_db(declining, "refusal", OTHER)
    turn = await run_with(await run_db(declining, "refusal_partial"), "Hello")
    assert (turn.state, turn.finish_reason) == ("done", "refusal")
    assert LEFT_OUT in turn.error_text
    calls = await run_db(lambda: list(ApiCall.objects.values_list("model", flat=True)))
    assert len(calls) == 2
    assert "0 mismatches" in await run_db(verify)
    await run_db(is_valid, turn.conversation)


@pytest.mark.parametrize("named", ["", "claude-nothing", "itself"])
async def test_without_a_model_that_can_go_on_nothing_changes(
    emulator: EmulatorServer, settings: Any, named: str
) -> None:
    model = await run_db(declining, "refusal_partial")
    settings.AGENTWEB_FALLBACK_MODEL = model if named == "itself" else named
    turn = await run_with(model, "Hello")
    assert (turn.state, turn.finish_reason) == ("done", "refusal")
    assert await run_db(ApiCall.objects.count) == 1
    # What was said before stays for people.
    assert await run_db(answer_text, turn)
