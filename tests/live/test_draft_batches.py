"""Checkpoints that are due within a moment go to the database together, each by its own lease."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from conversations.agent.stop import Stopped
from conversations.db import run_db
from conversations.live import draft_batches
from conversations.live.draft_batches import save_in_batch
from conversations.log.leases import Lease
from conversations.models import Draft, Turn
from conversations.turns.drafts import Checkpoint, save_drafts
from tests.support import people_and_turns
from tests.support.one_database import ON_POSTGRES

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


def answering(count: int) -> list[Lease]:
    """Give the leases of so many people's turns whose calls are open."""
    leases = [
        people_and_turns.started_turn(people_and_turns.person(f"p{number}"))
        for number in range(count)
    ]
    for lease in leases:
        people_and_turns.opened(lease)
    return leases


def of(lease: Lease, text: str) -> Checkpoint:
    return Checkpoint(lease=lease, text=text, thinking="")


def kept() -> dict[int, str]:
    return dict(Draft.objects.values_list("turn_id", "text"))


@pytest.fixture
def goes(monkeypatch: Any) -> list[int]:
    """Give how many checkpoints went to the database each time."""
    found: list[int] = []

    def save(checkpoints: list[Checkpoint]) -> list[Stopped | None]:
        found.append(len(checkpoints))
        return save_drafts(checkpoints)

    monkeypatch.setattr(draft_batches, "save_drafts", save)
    return found


async def test_those_of_many_answers_go_together(goes: list[int]) -> None:
    leases = await run_db(answering, 3)
    for words in ("Here", "Here you", "Here you are 100 %"):
        await asyncio.gather(*(save_in_batch(of(lease, words)) for lease in leases))
        assert await run_db(kept) == dict.fromkeys((lease.turn_id for lease in leases), words)
    assert goes == [3, 3, 3]


async def test_one_that_lost_its_lease_is_told_and_the_others_are_kept(goes: list[int]) -> None:
    one, lost, other = await run_db(answering, 3)
    await run_db(Turn.objects.filter(pk=lost.turn_id).update, lease_generation=lost.generation + 1)
    told = await asyncio.gather(
        *(save_in_batch(of(lease, "Here")) for lease in (one, lost, other)), return_exceptions=True
    )
    assert [type(each) for each in told] == [type(None), Stopped, type(None)]
    assert await run_db(kept) == {one.turn_id: "Here", other.turn_id: "Here"}
    assert goes == [3]


@ON_POSTGRES
@pytest.mark.skipif(connection.vendor == "sqlite", reason="one lock for all")
async def test_a_turn_that_somebody_holds_holds_up_no_other() -> None:
    one, held, other = leases = await run_db(answering, 3)
    await asyncio.gather(*(save_in_batch(of(lease, "Here")) for lease in leases))
    is_held, may_go = threading.Event(), threading.Event()

    @transaction.atomic
    def hold() -> None:
        Turn.objects.select_for_update().get(pk=held.turn_id)
        is_held.set()
        may_go.wait(30)

    @transaction.atomic
    def is_free(lease: Lease) -> bool:
        return Turn.objects.select_for_update(skip_locked=True).filter(pk=lease.turn_id).exists()

    holding = asyncio.create_task(run_db(hold))
    await asyncio.to_thread(is_held.wait, 30)
    keeping_all = asyncio.gather(*(save_in_batch(of(lease, "Here you")) for lease in leases))
    async with asyncio.timeout(30):
        while "Here you" not in (await run_db(kept)).values():
            await asyncio.sleep(0.01)
    assert not keeping_all.done()
    words = {one.turn_id: "Here you", held.turn_id: "Here", other.turn_id: "Here you"}
    assert await run_db(kept) == words
    assert [await run_db(is_free, lease) for lease in leases] == [True, False, True]
    may_go.set()
    await asyncio.gather(holding, keeping_all)
    assert set((await run_db(kept)).values()) == {"Here you"}


async def test_what_nobody_waits_for_any_more_is_not_kept(goes: list[int]) -> None:
    """A round that was closed meanwhile must not lend its words to the next one."""
    one, other = await run_db(answering, 2)
    over = asyncio.create_task(save_in_batch(of(one, "of the round before")))
    rest = asyncio.create_task(save_in_batch(of(other, "Here")))
    await asyncio.sleep(0)
    over.cancel()
    await rest
    assert await run_db(kept) == {other.turn_id: "Here"}
    assert goes == [1]


async def test_a_failure_is_everybodys_and_the_next_go_is_another(monkeypatch: Any) -> None:
    leases = await run_db(answering, 2)

    def fail(_checkpoints: list[Checkpoint]) -> list[Stopped | None]:
        raise OperationalError("on purpose")

    with monkeypatch.context() as broken:
        broken.setattr(draft_batches, "save_drafts", fail)
        told = await asyncio.gather(
            *(save_in_batch(of(lease, "Here")) for lease in leases), return_exceptions=True
        )
    assert [type(each) for each in told] == [OperationalError] * 2
    await asyncio.gather(*(save_in_batch(of(lease, "Here")) for lease in leases))
    assert len(await run_db(kept)) == 2
