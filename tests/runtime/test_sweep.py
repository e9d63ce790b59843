"""Who does what has time: a process that serves pages and runs turns, and beat where workers do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from conversations.agent.ports import Sending
from conversations.context.view import wire
from conversations.library.erase_proof import purge_if_due
from conversations.models import Proposal, Session, Turn
from conversations.reductions import proposals
from conversations.runtime import process as processes
from conversations.runtime import sweep
from conversations.runtime.process import Process
from conversations.turns import titles
from tests.support import people_and_turns, stored_turns, toy_tools
from tests.support.approval_turns import FIRE, waiting_turn
from tests.support.reduced_conversations import talk, who

SWEEPS = 5


@pytest.mark.asyncio
@pytest.mark.parametrize(("place", "redis"), [("web", ""), ("web", "redis://x"), ("worker", "x")])
async def test_what_has_time_is_done_where_no_beat_does_it(
    place: str, redis: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.AGENTWEB_RUN_TURNS_IN, settings.REDIS_URL = place, redis
    monkeypatch.setattr(processes, "SWEEP_SECONDS", 0.001)
    monkeypatch.setattr(processes, "TIDY_SWEEPS", 1)
    swept, tidied, enough = list[int](), list[int](), asyncio.Event()

    async def sweep(_: Process) -> None:
        swept.append(1)
        if len(swept) > SWEEPS:
            enough.set()

    async def tidy() -> None:
        tidied.append(1)

    monkeypatch.setattr(Process, "sweep", sweep)
    monkeypatch.setattr(processes, "run_maintenance", tidy)
    task = asyncio.create_task(Process()._sweep_regularly())
    async with asyncio.timeout(60):
        await enough.wait()
    task.cancel()
    assert (len(tidied) >= SWEEPS) is (place == "web")
    assert bool(tidied) is (place == "web")


@pytest.mark.django_db(transaction=True)
def test_a_job_that_fails_holds_up_no_other(
    settings: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings.AGENTWEB_TRASH_DAYS = 999_999
    settings.AGENTWEB_ANCHOR_FILE = str(tmp_path / "anchors.jsonl")
    Session.objects.create(session_key="old", session_data="", expire_date=timezone.now())
    asyncio.run(processes.run_maintenance())
    assert not Session.objects.exists()
    assert (tmp_path / "anchors.jsonl").exists()
    assert [one.getMessage() for one in caplog.records if one.exc_info] == [
        "sweep_workspaces failed; it is tried again"
    ]


@pytest.mark.asyncio
async def test_a_process_that_knows_the_owner_cleans_what_was_erased(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where workers run the maintenance, their role does not own the tables."""
    settings.AGENTWEB_RUN_TURNS_IN = "worker"
    settings.MIGRATE_DATABASE = {"USER": "owner"}
    monkeypatch.setattr(processes, "SWEEP_SECONDS", 0.001)
    monkeypatch.setattr(processes, "TIDY_SWEEPS", 1)
    cleaned = asyncio.Event()

    async def sweep(_: Process) -> None:
        pass

    async def run(work: Any) -> None:
        assert work is purge_if_due
        cleaned.set()

    monkeypatch.setattr(Process, "sweep", sweep)
    monkeypatch.setattr(processes, "run_db", run)
    task = asyncio.create_task(Process()._sweep_regularly())
    async with asyncio.timeout(60):
        await cleaned.wait()
    task.cancel()


@pytest.mark.asyncio
async def test_alerts_are_sent_beside_the_sweep_and_again_after_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "ALERT_SECONDS", 0.001)
    swept, enough = list[int](), asyncio.Event()

    async def deliver() -> int:
        swept.append(1)
        if len(swept) < SWEEPS:
            raise OSError
        enough.set()
        return 0

    monkeypatch.setattr(processes, "deliver_alerts", deliver)
    task = asyncio.create_task(processes._alert_regularly())
    async with asyncio.timeout(60):
        await enough.wait()
    task.cancel()


@pytest.fixture
def finds(db: None, django_assert_num_queries: Any) -> Callable[[], bool]:
    """Say whether a sweep finds anything, which is one statement."""

    def look() -> bool:
        with django_assert_num_queries(1):
            return sweep.finds_work()

    assert not look()
    return look


def test_a_sweep_finds_turns_that_wait_or_whose_worker_is_gone(finds: Callable[[], bool]) -> None:
    lease = people_and_turns.started_turn()
    assert not finds()
    rows = Turn.objects.filter(pk=lease.turn_id)
    rows.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert finds()
    rows.update(lease_until=None)
    assert finds()
    rows.update(state="done")
    assert not finds()
    rows.update(state="queued")
    assert finds()


@pytest.mark.parametrize("hours", [24, -1])
def test_a_sweep_finds_questions_that_are_late(
    hours: int,
    finds: Callable[[], bool],
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    toy_tools.install(monkeypatch, tmp_path / "ran")
    settings.AGENTWEB_APPROVAL_HOURS = hours
    waiting_turn(FIRE, text="x")
    assert finds() is (hours < 0)


def test_a_sweep_finds_requests_that_nobody_claimed_or_whose_process_is_gone(
    finds: Callable[[], bool],
) -> None:
    key, _ = proposals.request_summary(**who(talk(stored_turns.played())))
    assert finds()
    assert proposals.claim_proposal(proposal_id=key)
    assert not finds()
    Proposal.objects.update(asked_at=timezone.now() - timedelta(hours=1))
    assert finds()


def test_a_sweep_finds_side_calls_that_are_lost(finds: Callable[[], bool], settings: Any) -> None:
    lease = people_and_turns.started_turn()
    people_and_turns.answered(lease)
    words = wire.encode([{"role": "user", "content": [{"type": "text", "text": "Hello"}]}])
    asked = Sending("title", stored_turns.ENVELOPE, words, 500, None, 1)
    titles.open_title_call(lease=lease, sending=asked)
    assert not finds()
    settings.AGENTWEB_ATTEMPT_SECONDS = -1_000
    assert finds()
