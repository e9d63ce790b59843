"""Summaries that a person asks for, by the running app: proposed, refused in words, accounted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from agentweb.emulator import server
from agentweb.emulator.server import EmulatorServer
from conversations.audit import verify
from conversations.context.steps.by_hand import list_summary_requests
from conversations.db import run_db
from conversations.live.hub import hub
from conversations.models import (
    ApiCall,
    ApiModel,
    ApiResult,
    Conversation,
    ModelPrice,
    Proposal,
)
from conversations.reductions import proposals
from conversations.reductions.record_change import ManualChangeError
from tests.support import people_and_turns, stored_turns
from tests.support.reduced_conversations import digest, now, talk, who
from tests.support.running_turns import supervising, unrecorded, until
from tests.support.stored_turns import Played

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.fixture
def emulator(settings: Any) -> Iterator[EmulatorServer]:
    settings.AGENTWEB_TITLE_MODEL = "off"
    with server.start(pace=0, record=True) as running:
        settings.ANTHROPIC_BASE_URL = running.url
        yield running
    assert hub._topics == {}


def faulty(fault: str) -> str:
    """Put a model into the catalogue whose calls all suffer that fault."""
    name = f"{stored_turns.MODEL}+{fault}"
    model = ApiModel.objects.get(pk=stored_turns.MODEL)
    model.pk = name
    model.save(force_insert=True)
    for price in ModelPrice.objects.filter(model=stored_turns.MODEL):
        price.pk, price.model_id = None, name
        price.save(force_insert=True)
    return name


def begin() -> tuple[Played, int]:
    played = talk(stored_turns.played())
    key, _ = proposals.request_summary(**who(played))
    return played, key


def is_over() -> bool:
    return Proposal.objects.exclude(text="", reason="").exists()


def rejected(played: Played) -> list[str]:
    rows = played.conversation.transformations.exclude(actor=None).filter(outcome="rejected")
    return [row.reason for row in rows]


def problems() -> list[str]:
    return [str(problem) for problem in verify.verify_everything(verify.Tally())]


async def test_a_summary_is_proposed_and_nothing_is_applied(emulator: EmulatorServer) -> None:
    async with supervising() as supervisor:
        played, key = await run_db(begin)
        before = await run_db(digest, played)
        supervisor.propose(key)
        await until(is_over)
    made = await run_db(Proposal.objects.get)
    assert (made.reason, bool(made.text), made.call_id is None) == ("", True, False)
    assert await run_db(digest, played) == before
    result = await run_db(ApiResult.objects.select_related("call").get, call=made.call_id)
    assert (result.status, result.call.purpose) == ("complete", "summary")
    assert result.cost_micros == emulator.emulator.billed_micros
    assert await run_db(unrecorded, emulator) == []
    assert await run_db(problems) == []


async def test_a_summary_whose_wake_up_was_lost_is_asked_for_once(
    emulator: EmulatorServer,
) -> None:
    async with supervising() as one, supervising(is_alone=False) as two:
        _, key = await run_db(begin)
        calls = await run_db(ApiCall.objects.count)
        await asyncio.gather(one.sweep(), two.sweep())
        await until(is_over, 20)
        # A wake-up that was only late finds that it is asked for already.
        two.propose(key)
    assert (await run_db(Proposal.objects.get)).text
    assert await run_db(ApiCall.objects.count) == calls + 1
    assert await run_db(problems) == []


async def test_a_call_that_fails_is_a_refusal_on_record(
    emulator: EmulatorServer, settings: Any
) -> None:
    settings.AGENTWEB_SUMMARY_MODEL = await run_db(faulty, "overloaded")
    async with supervising() as supervisor:
        played, key = await run_db(begin)
        supervisor.propose(key)
        await until(is_over)
    made = await run_db(Proposal.objects.get)
    assert "gave no answer" in made.reason
    assert await run_db(rejected, played) == [made.reason]
    assert await run_db(problems) == []


@pytest.mark.parametrize("is_merge", [True, False], ids=["the merge", "a part"])
async def test_in_parts_a_failed_merge_is_no_refusal_and_a_failed_part_is(
    emulator: EmulatorServer, is_merge: bool
) -> None:
    def begin_in_parts() -> tuple[int, int]:
        played = talk(stored_turns.played(), 8)
        ApiModel.objects.filter(pk=stored_turns.MODEL).update(window=3_000)
        policy = {"preset": "staged", "summary_max_tokens": 256, "window_reserve_tokens": 1_024}
        Conversation.objects.filter(pk=played.conversation.pk).update(policy=policy)
        key, _ = proposals.request_summary(**who(played))
        request = proposals.read_request(proposal_id=key)
        assert request is not None
        return key, len(list_summary_requests(request.steps))

    async with supervising() as supervisor:
        key, calls = await run_db(begin_in_parts)
        assert calls > 2
        failed = calls if is_merge else calls - 1
        emulator.emulator.ordered_faults[:] = ["none"] * (failed - 1) + ["overloaded"] * 2
        supervisor.propose(key)
        await until(is_over)
    made = await run_db(Proposal.objects.get)
    if is_merge:
        assert (bool(made.text), made.reason) == (True, "")
    else:
        assert made.reason.startswith(f"Summary failed: part {failed} of {calls - 1}: ")


async def test_what_the_budget_does_not_allow_is_said_and_not_asked(
    emulator: EmulatorServer,
) -> None:
    async with supervising() as supervisor:
        played, key = await run_db(begin)
        await run_db(people_and_turns.limited, played.user, 1, "day")
        supervisor.propose(key)
        await until(is_over)
    made = await run_db(Proposal.objects.get)
    assert "budget" in made.reason
    assert await run_db(rejected, played) == []
    assert await run_db(ApiCall.objects.filter(pk__gt=0, result=None).count) == 0


async def test_the_end_of_the_server_ends_it_with_a_word(
    emulator: EmulatorServer, settings: Any
) -> None:
    settings.AGENTWEB_SUMMARY_MODEL = await run_db(faulty, "hang_after:0")
    async with supervising() as supervisor:
        _, key = await run_db(begin)
        calls = await run_db(ApiCall.objects.count)
        supervisor.propose(key)
        await until(lambda: ApiCall.objects.count() > calls)
    made = await run_db(Proposal.objects.get)
    assert "stopped" in made.reason
    assert (await run_db(ApiResult.objects.latest, "pk")).status == "stopped"
    assert await run_db(problems) == []


async def test_what_a_dead_process_asked_is_closed_by_the_next_start(
    emulator: EmulatorServer, settings: Any
) -> None:
    settings.AGENTWEB_SUMMARY_MODEL = await run_db(faulty, "hang_after:0")
    async with supervising() as supervisor:
        _, key = await run_db(begin)
        calls = await run_db(ApiCall.objects.count)
        supervisor.propose(key)
        await until(lambda: ApiCall.objects.count() > calls)
        (task,) = supervisor._side_calls._running
        task.cancel()
        await asyncio.wait([task])
    assert not await run_db(is_over)
    async with supervising():
        assert await run_db(is_over)
    assert (await run_db(ApiResult.objects.latest, "pk")).status == "lost"
    assert await run_db(problems) == []


async def test_a_request_follows_the_lease_of_the_process_that_claimed_it(
    emulator: EmulatorServer, settings: Any
) -> None:
    settings.AGENTWEB_LEASE_SECONDS = 1
    settings.AGENTWEB_SUMMARY_MODEL = await run_db(faulty, "hang_after:0")
    async with supervising() as supervisor:
        played, key = await run_db(begin)
        later = timezone.now() + timedelta(seconds=30)
        # Nobody has claimed it yet: its wake-up may be late.
        assert await run_db(partial(proposals.expire_proposals, now=later)) == 0
        calls = await run_db(ApiCall.objects.count)
        supervisor.propose(key)
        await until(lambda: ApiCall.objects.count() > calls)
        await asyncio.sleep(2)
        # The model has said nothing for two leases, and the process is alive.
        assert await run_db(proposals.expire_proposals) == 0
        (task,) = supervisor._side_calls._running
        task.cancel()
        await asyncio.wait([task])
        with pytest.raises(ManualChangeError, match="wait until it is done"):
            await run_db(partial(proposals.request_summary, **who(played), target=1))
        await asyncio.sleep(1.2)
        assert await run_db(proposals.expire_proposals) == 1
    assert "The server stopped" in (await run_db(Proposal.objects.get)).reason
    again, is_new = await run_db(partial(proposals.request_summary, **who(played)))
    assert (again != key, is_new) == (True, True)


async def test_what_came_too_late_or_cannot_be_asked_is_said(emulator: EmulatorServer) -> None:
    async with supervising() as supervisor:
        played, key = await run_db(begin)

        def goes_on() -> None:
            people_and_turns.answered(people_and_turns.next_turn(now(played)))

        def again() -> int:
            Proposal.objects.all().delete()
            found, _ = proposals.request_summary(**who(played))
            ApiModel.objects.filter(pk=stored_turns.MODEL).update(is_enabled=False)
            return found

        await run_db(goes_on)
        supervisor.propose(key)
        await until(is_over)
        assert "went on" in (await run_db(Proposal.objects.get)).reason
        supervisor.propose(await run_db(again))
        await until(is_over)
    assert "not in the catalogue" in (await run_db(Proposal.objects.get)).reason
