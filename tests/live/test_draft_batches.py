"""The drafts of all running answers are saved together, each by its own lease."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from conversations.agent.stop import Stopped
from conversations.db import run_db
from conversations.live import draft_batches
from conversations.live.draft_batches import DRAFT_CHARACTERS, ShownText
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


async def show(leases: list[Lease], words: str) -> list[ShownText]:
    """Have each answer show its first words."""
    texts = [ShownText(lease) for lease in leases]
    for one in texts:
        await one.add(words, "")
    return texts


def kept() -> dict[int, str]:
    return dict(Draft.objects.values_list("turn_id", "text"))


async def until_kept(*words: str) -> dict[int, str]:
    """Wait until the drafts have these words, in any order, and no others."""
    async with asyncio.timeout(30):
        while sorted((found := await run_db(kept)).values()) != sorted(words):
            await asyncio.sleep(0.01)
    return found


@pytest.fixture(autouse=True)
def _often(monkeypatch: Any) -> None:
    monkeypatch.setattr(draft_batches, "DRAFT_SECONDS", 0.05)


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
    texts = await show(await run_db(answering, 3), "Here")
    assert goes == []
    for words in (" you", " are 100 %"):
        for one in texts:
            await one.add(words, "")
        await until_kept(*[one.text for one in texts])
    assert [one.text for one in texts] == ["Here you are 100 %"] * 3
    assert goes == [3, 3]


async def test_nothing_is_saved_that_is_saved_already(goes: list[int]) -> None:
    (one,) = await show(await run_db(answering, 1), "Here")
    await one.add(" you", "")
    await until_kept("Here you")
    await asyncio.sleep(0.2)
    assert goes == [1]


async def test_much_text_does_not_wait_as_long(goes: list[int], monkeypatch: Any) -> None:
    monkeypatch.setattr(draft_batches, "DRAFT_SECONDS", 3_600)
    little, much = await show(await run_db(answering, 2), "Here")
    await little.add(" you", "")
    words = " you are" * (DRAFT_CHARACTERS // 8)
    await much.add(words, "")
    await until_kept("Here you", "Here" + words)
    assert goes == [2]


async def test_one_that_lost_its_lease_is_told_and_the_others_are_kept(
    goes: list[int], caplog: Any
) -> None:
    one, lost, other = await run_db(answering, 3)
    texts = await show([one, lost, other], "Here")
    await run_db(Turn.objects.filter(pk=lost.turn_id).update, lease_generation=lost.generation + 1)
    for text in texts:
        await text.add(" you", "")
    found = await until_kept("Here you", "Here", "Here you")
    assert found[lost.turn_id] == "Here"
    # The rows are there before the event loop hears of it.
    async with asyncio.timeout(30):
        while not caplog.records:
            await asyncio.sleep(0.01)
    assert [each.getMessage() for each in caplog.records] == [f"turn {lost.turn_id} lost its lease"]
    assert goes == [3]


@ON_POSTGRES
@pytest.mark.skipif(connection.vendor == "sqlite", reason="one lock for all")
async def test_a_turn_that_somebody_holds_holds_up_no_other() -> None:
    one, held, other = leases = await run_db(answering, 3)
    texts = await show(leases, "Here")
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
    for text in texts:
        await text.add(" you", "")
    found = await until_kept("Here you", "Here", "Here you")
    assert found == {one.turn_id: "Here you", held.turn_id: "Here", other.turn_id: "Here you"}
    assert [await run_db(is_free, lease) for lease in leases] == [True, False, True]
    may_go.set()
    await holding
    await until_kept(*["Here you"] * 3)


async def test_what_is_shown_while_a_draft_is_saved_is_saved_after_it(monkeypatch: Any) -> None:
    began, may_go, saved = threading.Event(), threading.Event(), list[str]()

    def save(checkpoints: list[Checkpoint]) -> list[Stopped | None]:
        saved.extend(each["text"] for each in checkpoints)
        began.set()
        may_go.wait(30)
        return save_drafts(checkpoints)

    monkeypatch.setattr(draft_batches, "save_drafts", save)
    (one,) = await show(await run_db(answering, 1), "Here")
    await one.add(" you", "")
    await asyncio.to_thread(began.wait, 30)
    await one.add(" are", "")
    await asyncio.sleep(0.2)
    assert saved == ["Here you"]
    may_go.set()
    await until_kept("Here you are")
    assert saved == ["Here you", "Here you are"]


async def test_what_nobody_waits_for_any_more_is_not_kept(goes: list[int]) -> None:
    """A round that was closed meanwhile must not lend its words to the next one."""
    over, rest = await show(await run_db(answering, 2), "Here")
    await over.add(" of the round before", "")
    await rest.add(" you", "")
    over.end()
    await until_kept("Here", "Here you")
    assert goes == [1]


async def test_an_answer_that_ended_sets_the_next_one_no_time(
    goes: list[int], monkeypatch: Any
) -> None:
    over, rest = await show(await run_db(answering, 2), "Here")
    monkeypatch.setattr(draft_batches, "DRAFT_SECONDS", 3_600)
    await over.add(" you", "")
    over.end()
    monkeypatch.setattr(draft_batches, "DRAFT_SECONDS", 0.05)
    await rest.add(" you", "")
    await until_kept("Here", "Here you")
    assert goes == [1]


async def test_a_failure_is_everybodys_and_is_tried_again(monkeypatch: Any, caplog: Any) -> None:
    tries = list[int]()

    def fail(checkpoints: list[Checkpoint]) -> list[Stopped | None]:
        tries.append(len(checkpoints))
        if len(tries) == 1:
            raise OperationalError("on purpose")
        return save_drafts(checkpoints)

    monkeypatch.setattr(draft_batches, "save_drafts", fail)
    texts = await show(await run_db(answering, 2), "Here")
    for one in texts:
        await one.add(" you", "")
    await until_kept("Here you", "Here you")
    assert tries == [2, 2]
    assert len(caplog.records) == 2


async def test_first_words_are_not_added_where_they_cannot_be_kept(monkeypatch: Any) -> None:
    def fail(**_: Any) -> None:
        raise OperationalError("on purpose")

    (lease,) = await run_db(answering, 1)
    text = ShownText(lease)
    with monkeypatch.context() as broken:
        broken.setattr(draft_batches, "save_draft", fail)
        with pytest.raises(OperationalError):
            await text.add("Here", "")
    assert text.text == ""
    await text.add("Here you", "")
    assert await run_db(kept) == {lease.turn_id: "Here you"}
