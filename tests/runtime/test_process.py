"""Processes beside and after each other: what each leaves to the next, and never a turn twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations.db import run_db
from conversations.live import draft_batches
from conversations.live.hub import hub
from conversations.log import leases
from conversations.models import ApiCall, Turn
from conversations.runtime import process as processing
from conversations.runtime import turn as running_module
from conversations.runtime.process import Process
from conversations.turns import drafts, turns
from tests.support import people_and_turns
from tests.support.running_turns import (
    accounted,
    answer_text,
    ended,
    is_valid,
    queue,
    supervising,
    until,
)
from tools.framework.toolset import Toolset

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorServer]:
    with server.start(pace=0, record=True) as running:
        yield running


@pytest.fixture(autouse=True)
def _served(emulator: EmulatorServer, settings: Any, monkeypatch: Any) -> Iterator[None]:
    """Point the app at the emulator; afterwards every request it saw must be accounted for."""
    emulator.emulator.reset()
    settings.ANTHROPIC_BASE_URL = emulator.url
    settings.AGENTWEB_MAX_BACKOFF_SECONDS = 1
    monkeypatch.setattr(running_module, "RENEWALS", 100)
    monkeypatch.setattr(draft_batches, "DRAFT_SECONDS", 0.05)
    yield
    assert hub._topics == {}


async def test_a_new_process_interrupts_what_a_dead_one_left_and_starts_what_waits(
    emulator: EmulatorServer,
) -> None:
    def left() -> Turn:
        lease = people_and_turns.started_turn(people_and_turns.person("ada"))
        people_and_turns.opened(lease)
        drafts.save_draft(lease=lease, text="The first half", thinking="")
        return people_and_turns.turn_of(lease)

    dead, waiting = await run_db(left), await queue("Hello")
    async with supervising(is_alone=True):
        assert (await ended(waiting)).state == "done"
    row = await ended(dead)
    assert (row.state, row.finish_reason) == ("interrupted", "crash")
    assert await run_db(answer_text, row) == "The first half"
    await run_db(is_valid, row.conversation)


async def test_a_process_beside_others_leaves_their_turns_alone(emulator: EmulatorServer) -> None:
    lease = await run_db(lambda: people_and_turns.started_turn(people_and_turns.person("ada")))
    async with supervising(is_alone=False) as supervisor:
        await supervisor.sweep()
        assert (await run_db(people_and_turns.turn_of, lease)).state == "running"
        over = timezone.now() - timedelta(seconds=1)
        await run_db(Turn.objects.update, lease_until=over)
        await supervisor.sweep()
        assert (await run_db(people_and_turns.turn_of, lease)).state == "interrupted"


async def test_two_supervisors_never_run_one_turn_twice(emulator: EmulatorServer) -> None:
    waiting = [await queue(f"Hello number {at}") for at in range(6)]
    async with supervising(is_alone=False) as one, supervising(is_alone=False) as two:
        for turn in waiting:
            for supervisor in (one, two, one):
                supervisor.wake(turn.pk)
        states = [(await ended(turn)).state for turn in waiting]
    assert states == ["done"] * 6
    assert len(emulator.emulator.log) == 6
    generations = await run_db(lambda: set(Turn.objects.values_list("lease_generation", flat=True)))
    assert generations == {1}
    await accounted(emulator)


async def test_a_drain_lets_short_turns_end_and_interrupts_long_ones(
    emulator: EmulatorServer,
) -> None:
    async with supervising() as supervisor:
        short = await queue("Answer in 20 words emulator:pace=0.005")
        long = await queue("Answer in 5000 words emulator:pace=0.02")
        supervisor.wake(short.pk)
        supervisor.wake(long.pk)
        await until(lambda: ApiCall.objects.count() == 2)
        await supervisor.drain(4)
        assert (await ended(short)).state == "done"
        row = await ended(long)
        assert (row.state, row.finish_reason) == ("interrupted", "shutdown")
        assert await run_db(answer_text, row)
        await run_db(is_valid, row.conversation)
    await accounted(emulator)


async def test_a_drain_leaves_a_turn_between_two_calls_to_the_next_process(
    emulator: EmulatorServer, monkeypatch: Any
) -> None:
    """Its tools have run once, its text is whole, and nobody is told that it was interrupted."""
    started, go = asyncio.Event(), asyncio.Event()
    runs = []
    plain = Toolset.run

    async def slow(self: Toolset, name: str, *arguments: Any) -> Any:
        runs.append(name)
        started.set()
        await go.wait()
        return await plain(self, name, *arguments)

    monkeypatch.setattr(Toolset, "run", slow)
    async with supervising() as supervisor:
        turn = await queue("List my files")
        supervisor.wake(turn.pk)
        await started.wait()
        draining = asyncio.create_task(supervisor.drain(20))
        await asyncio.sleep(0.05)
        go.set()
        await draining
        row = await run_db(Turn.objects.get)
        assert (row.state, row.lease_until, row.takeovers) == ("running", None, 0)
        assert len(emulator.emulator.log) == 1
    async with supervising(is_alone=False):
        done = await ended(turn)
    assert (done.state, done.finish_reason) == ("done", "end_turn")
    assert runs == ["list_files"]
    await run_db(is_valid, done.conversation)
    await accounted(emulator)


async def test_a_process_runs_no_more_turns_at_once_than_it_may(
    emulator: EmulatorServer, settings: Any
) -> None:
    settings.AGENTWEB_PROCESS_TURNS = 2
    async with supervising() as supervisor:
        queued = [await queue("Answer in 40 words emulator:pace=0.005") for _ in range(5)]
        for turn in queued:
            supervisor.wake(turn.pk)
            supervisor.wake(turn.pk)
        most = 0

        async def count() -> None:
            nonlocal most
            while True:
                most = max(most, supervisor.running)
                await asyncio.sleep(0.005)

        counting = asyncio.create_task(count())
        await until(lambda: not Turn.objects.exclude(state="done").exists())
        counting.cancel()
    assert most == 2
    await accounted(emulator)


async def test_what_is_sent_during_a_drain_waits_for_the_next_start(
    emulator: EmulatorServer,
) -> None:
    async with supervising() as supervisor:
        await supervisor.drain(0)
        turn = await queue("Hello")
        supervisor.wake(turn.pk)
        await asyncio.sleep(0.05)
        assert (await run_db(Turn.objects.get)).state == "queued"
    async with supervising():
        assert (await ended(turn)).state == "done"


async def test_a_queued_turn_that_was_stopped_is_not_run(emulator: EmulatorServer) -> None:
    turn = await queue("Hello")
    await run_db(turns.request_stop, turn=turn)
    async with supervising() as supervisor:
        supervisor.wake(turn.pk)
        await asyncio.sleep(0.05)
    assert emulator.emulator.log == []
    assert await run_db(leases.claim_turn, turn_id=turn.pk, owner="late") is None


async def test_a_drain_that_hangs_comes_to_its_end_and_says_where_it_was(
    settings: Any, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    never = asyncio.Event()
    settings.AGENTWEB_DRAIN_SECONDS = 0
    monkeypatch.setattr(processing, "GRACE", 0.1)
    monkeypatch.setattr(processing.watch, "announce_stop", never.wait)
    async with asyncio.timeout(60):
        await Process().drain()
    assert "await watch.announce_stop()" in caplog.text
    never.set()
