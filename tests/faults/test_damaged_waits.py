"""A turn that waits, or whose worker died, goes on or ends with rows of calls that are damaged.

A call whose arguments cannot be read does not run, and its person may still refuse it. A result
that cannot be read becomes an error result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agentweb.emulator import server
from agentweb.emulator.script import Script, after, call, say, when
from agentweb.emulator.server import EmulatorServer
from conversations.agent.tool_calls import CUT_SHORT
from conversations.context.view import wire
from conversations.db import run_db
from conversations.inspector.review import list_unsent
from conversations.models import (
    Approval,
    Blob,
    Conversation,
    Decision,
    QueuedPrompt,
    ToolCall,
    Turn,
    User,
)
from conversations.runtime import dispatch
from conversations.runtime.adapters import DAMAGED
from conversations.runtime.supervisor import Supervisor
from conversations.toolbox.approval_checks import CHANGED, DENIED, EXPIRED
from conversations.turns import turns
from conversations.turns.resume import DAMAGED as DAMAGED_RESULT
from conversations.turns.takeovers import NOT_RUN
from tests.faults.oracle import check_totals
from tests.support import people_and_turns, toy_tools
from tests.support.damaged_rows import list_messages, put_bytes, unguarded
from tests.support.running_turns import ended, is_valid, queue, supervising, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
BYTES = pytest.mark.only_database("sqlite", "PostgreSQL stores no text that is not UTF-8")
SCRIPT = Script([
    when("please fire", call("peek", at="a"), call("fire", at="b"), call("put", at="c")),
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


def call_of(name: str) -> ToolCall:
    return ToolCall.objects.only("tool_use_id", "output_id").get(name=name)


def spoil_input() -> None:
    put_bytes(call_of("fire"), "input")


def garble_input() -> None:
    with unguarded():
        ToolCall.objects.filter(name="fire").update(input='{"at"')


def spoil_output() -> None:
    put_bytes(Blob(pk=call_of("peek").output_id), "text")


def garble_output() -> None:
    with unguarded():
        Blob.objects.filter(pk=call_of("peek").output_id).update(text='["')


def spoil_question(column: str) -> Callable[[], None]:
    def spoil() -> None:
        put_bytes(Approval.objects.only("pk").get(), column)

    spoil.__name__ = f"spoil_{column}"
    return spoil


def garble_words(text: str) -> Callable[[], None]:
    def garble() -> None:
        with unguarded():
            Approval.objects.update(words=text)

    garble.__name__ = "garble_words"
    return garble


INPUTS = [pytest.param(spoil_input, marks=BYTES), garble_input]
OUTPUTS = [pytest.param(spoil_output, marks=BYTES), garble_output]
QUESTIONS = [
    *(
        pytest.param(spoil_question(column), marks=BYTES)
        for column in ("words", "destination", "sources", "arguments_digest")
    ),
    garble_words('[["se'),
    garble_words('{"a":1}'),
    garble_words('[["one"],5,["secret",7]]'),
]
DAMAGES = pytest.mark.parametrize(
    "damage", [*INPUTS, *OUTPUTS, *QUESTIONS], ids=lambda one: one.__name__
)


async def waiting(supervisor: Supervisor) -> Turn:
    """Run a turn until it waits for a person and nobody runs it."""
    turn = await queue("please fire")
    await run_db(lambda: people_and_turns.limited(User.objects.latest("pk"), 50_000_000))
    supervisor.wake(turn.pk)
    await until(Turn.objects.filter(pk=turn.pk, state="approval_wait").exists)
    await until(lambda: not supervisor._tasks)
    return await run_db(Turn.objects.select_related("conversation__owner").get, pk=turn.pk)


def open_and_decide(turn: Turn, verdict: str) -> int:
    """Open the page and decide as its form does; return the status."""
    client = Client()
    client.force_login(turn.conversation.owner)
    page = client.get(reverse("chat", args=[turn.conversation.public_id]))
    assert page.status_code == 200
    html = page.content.decode()
    digest = html.partition('name="digest" value="')[2].partition('"')[0]
    data = {"approval_id": Approval.objects.values("pk").get()["pk"], "verdict": verdict}
    place = reverse("decide", args=[turn.conversation.public_id])
    answer = client.post(place, data | {"digest": digest}, headers={"HX-Request": "true"})
    return answer.status_code


def read_results(conversation: Conversation) -> list[tuple[Any, bool]]:
    """Return the results of the calls as the model got them, and whether each is an error."""
    [message] = list_messages(conversation, "results")
    blocks = wire.decode(message.content)
    return [(one["content"], one.get("is_error", False)) for one in blocks]


def check_ended(turn: Turn) -> None:
    """Check that the turn left nothing open, that its page opens, and that the chat goes on."""
    check_totals()
    is_valid(turn.conversation)
    client = Client()
    client.force_login(turn.conversation.owner)
    assert client.get(reverse("chat", args=[turn.conversation.public_id])).status_code == 200


@DAMAGES
async def test_a_question_is_refused_whatever_of_it_is_damaged_and_the_turn_goes_on(
    damage: Callable[[], None], emulator: EmulatorServer, ran: Path, monkeypatch: Any
) -> None:
    async with supervising() as supervisor:
        monkeypatch.setattr(dispatch, "supervisor", supervisor)
        turn = await waiting(supervisor)
        await run_db(damage)
        assert await run_db(open_and_decide, turn, "denied") == 200
        supervisor.wake(turn.pk)
        row = await ended(turn)
    assert (row.state, row.takeovers) == ("done", 0)
    assert await run_db(lambda: call_of("fire").state) == "denied"
    peek, fire, put = await run_db(read_results, turn.conversation)
    assert fire == (DENIED, True)
    assert put == ("put has run", False)
    assert peek[1] == (damage in (spoil_output, garble_output))
    assert sorted(name for name, _ in toy_tools.ran(ran)) == ["peek", "put"]
    await run_db(check_ended, turn)


@pytest.mark.parametrize("damage", INPUTS)
async def test_a_call_that_is_damaged_after_it_was_allowed_does_not_run(
    damage: Callable[[], None], emulator: EmulatorServer, ran: Path, monkeypatch: Any
) -> None:
    async with supervising() as supervisor:
        monkeypatch.setattr(dispatch, "supervisor", supervisor)
        turn = await waiting(supervisor)
        monkeypatch.setattr(dispatch, "wake_turn", lambda _: None)
        assert await run_db(open_and_decide, turn, "once") == 200
        await run_db(damage)
        supervisor.wake(turn.pk)
        row = await ended(turn)
    assert (row.state, row.error_text) == ("done", "")
    assert (await run_db(read_results, turn.conversation))[1] == (CHANGED, True)
    assert sorted(name for name, _ in toy_tools.ran(ran)) == ["peek", "put"]
    await run_db(check_ended, turn)


@DAMAGES
async def test_a_damaged_question_expires(
    damage: Callable[[], None], emulator: EmulatorServer, ran: Path, settings: Any
) -> None:
    settings.AGENTWEB_APPROVAL_HOURS = 0
    async with supervising() as supervisor:
        turn = await waiting(supervisor)
        await run_db(damage)
        await supervisor.sweep()
        row = await ended(turn)
    assert row.state == "done"
    assert await run_db(lambda: Decision.objects.get().verdict) == "expired"
    assert (await run_db(read_results, turn.conversation))[1] == (EXPIRED, True)
    await run_db(check_ended, turn)


@DAMAGES
async def test_a_turn_with_a_damaged_question_is_stopped(
    damage: Callable[[], None], emulator: EmulatorServer, ran: Path
) -> None:
    async with supervising() as supervisor:
        turn = await waiting(supervisor)
        await run_db(damage)
        await run_db(turns.request_stop, turn=turn)
        row = await ended(turn)
    assert (row.state, row.finish_reason) == ("cancelled", "stopped")
    peek, fire, _ = await run_db(read_results, turn.conversation)
    assert peek[1] == (damage in (spoil_output, garble_output))
    assert fire == (NOT_RUN, True)
    await run_db(check_ended, turn)


def lose_worker(turn: Turn, fire: str) -> None:
    """Leave the turn as a worker does that died in the round, with the call of `fire` so stored."""
    at = timezone.now() - timedelta(minutes=5)
    lost = {"lease_owner": "gone", "lease_until": at, "claimed_at": at}
    Turn.objects.filter(pk=turn.pk).update(state="tool_wait", **lost)
    with unguarded():
        Approval.objects.all()._raw_delete("default")
        ToolCall.objects.filter(name="fire").update(state=fire)


@pytest.mark.parametrize(
    ("damage", "fire", "said"),
    [
        *((one, "started", CUT_SHORT) for one in (garble_input, garble_output)),
        (garble_input, "planned", DAMAGED),
        pytest.param(spoil_input, "started", CUT_SHORT, marks=BYTES),
        pytest.param(spoil_output, "started", CUT_SHORT, marks=BYTES),
        pytest.param(spoil_input, "planned", DAMAGED, marks=BYTES),
    ],
)
async def test_a_turn_with_damaged_calls_is_taken_over_once_and_goes_on(
    damage: Callable[[], None], fire: str, said: str, emulator: EmulatorServer, ran: Path
) -> None:
    async with supervising() as supervisor:
        turn = await waiting(supervisor)
    await run_db(damage)
    await run_db(lose_worker, turn, fire)
    async with supervising():
        row = await ended(turn)
    assert (row.state, row.error_text, row.takeovers) == ("done", "", 1)
    assert (await run_db(read_results, turn.conversation))[1] == (said, True)
    assert sorted(name for name, _ in toy_tools.ran(ran)) == ["peek", "put"]
    await run_db(check_ended, turn)


async def test_a_call_whose_stored_result_is_gone_does_not_run_again(
    emulator: EmulatorServer, ran: Path
) -> None:
    async with supervising() as supervisor:
        turn = await waiting(supervisor)
    await run_db(lose_worker, turn, "started")
    await run_db(lambda: ToolCall.objects.filter(name="put").update(output=None))
    async with supervising():
        row = await ended(turn)
    assert (row.state, row.takeovers) == ("done", 1)
    assert (await run_db(read_results, turn.conversation))[2] == (DAMAGED_RESULT, True)
    assert sorted(name for name, _ in toy_tools.ran(ran)) == ["peek", "put"]


def spoil_queued() -> None:
    row = QueuedPrompt.objects.only("pk").get()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE conversations_queuedprompt SET content ="
            " CAST(CAST(content AS BLOB) || X'C3FF' AS TEXT) WHERE id = %s",
            [row.pk],
        )


def garble_queued() -> None:
    QueuedPrompt.objects.update(content='[{"type":"text"')


@pytest.mark.parametrize("damage", [pytest.param(spoil_queued, marks=BYTES), garble_queued])
async def test_a_damaged_message_in_the_queue_waits_and_keeps_no_answer_from_its_end(
    damage: Callable[[], None], emulator: EmulatorServer, ran: Path, monkeypatch: Any
) -> None:
    async with supervising() as supervisor:
        monkeypatch.setattr(dispatch, "supervisor", supervisor)
        turn = await waiting(supervisor)
        await queue("And then?", turn.conversation)
        await run_db(damage)
        assert await run_db(open_and_decide, turn, "denied") == 200
        row = await ended(turn)
    assert (row.state, row.takeovers) == ("done", 0)
    await run_db(check_removable, turn.conversation)


def check_removable(conversation: Conversation) -> None:
    """Check that the damaged message is shown, is not sent, is one, and can be removed."""
    client = Client()
    client.force_login(conversation.owner)
    [queued] = QueuedPrompt.objects.only("client_id")
    page = client.get(reverse("chat", args=[conversation.public_id]))
    assert "Damaged in the database" in page.content.decode()
    sent = client.post(reverse("send_queued", args=[conversation.public_id]))
    assert sent.status_code == 409
    assert "remove it" in sent.content.decode()
    # As from a browser that did not learn that it arrived.
    again = {"text": "And then?", "client_id": queued.client_id}
    assert client.post(reverse("send", args=[conversation.public_id]), again).status_code == 302
    list_unsent(conversation)
    place = reverse("withdraw", args=[conversation.public_id, queued.client_id])
    assert client.post(place).status_code == 302
    assert not QueuedPrompt.objects.exists()


@BYTES
@pytest.mark.parametrize("way", ["denied", "lost"])
async def test_a_call_whose_id_cannot_be_decoded_ends_the_turn_and_its_message_is_named(
    way: str, emulator: EmulatorServer, ran: Path, monkeypatch: Any
) -> None:
    async with supervising() as supervisor:
        monkeypatch.setattr(dispatch, "supervisor", supervisor)
        turn = await waiting(supervisor)
        await run_db(lambda: put_bytes(call_of("fire"), "tool_use_id"))
        if way == "denied":
            assert await run_db(open_and_decide, turn, "denied") == 200
            await ended(turn)
    if way == "lost":
        await run_db(lose_worker, turn, "started")
    async with supervising() as supervisor:
        row = await ended(turn)
        assert (row.state, row.error_code) == ("failed", "damaged")
        assert row.error_text.startswith("Message 2 is damaged in the database")
        following = await queue("And then?", turn.conversation)
        supervisor.wake(following.pk)
        assert (await ended(following)).state == "done"
    await run_db(check_ended, following)


@BYTES
async def test_a_decision_on_a_call_whose_id_cannot_be_decoded_later_ends_no_turn(
    emulator: EmulatorServer, ran: Path, monkeypatch: Any
) -> None:
    async with supervising() as supervisor:
        monkeypatch.setattr(dispatch, "supervisor", supervisor)
        turn = await waiting(supervisor)
        assert await run_db(open_and_decide, turn, "denied") == 200
        await ended(turn)
        await run_db(lambda: put_bytes(call_of("fire"), "tool_use_id"))
        following = await queue("And then?", turn.conversation)
        supervisor.wake(following.pk)
        assert (await ended(following)).state == "done"
    await run_db(check_ended, following)
