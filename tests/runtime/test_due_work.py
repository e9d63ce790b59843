"""Work on the database is taken when it is due: first words soon, ends of shown answers late."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, cast

import pytest
from asgiref.sync import async_to_sync
from django.utils import translation

from agentweb.emulator import server
from conversations.agent.stop import Switch
from conversations.db import LATE, THREADS, DueThreads, run_db, run_db_late, run_db_soon
from conversations.runtime import adapters, titles
from conversations.runtime import supervisor as supervisor_module
from conversations.runtime.adapters import TurnCalls
from conversations.runtime.supervisor import Supervisor
from tests.support import people_and_turns
from tests.support.running_turns import ended, queue, supervising

pytestmark = pytest.mark.django_db(transaction=True)


class BusyThreads:
    """Work that keeps all threads of the database busy; `free_one` ends the first of it."""

    def __init__(self) -> None:
        self._gates = [threading.Event() for _ in range(THREADS)]
        self._work = [asyncio.ensure_future(run_db_soon(gate.wait, 90)) for gate in self._gates]

    async def free_one(self) -> None:
        self._gates[0].set()
        await self._work[0]

    async def free_all(self) -> None:
        for gate in self._gates:
            gate.set()
        await asyncio.gather(*self._work)


def watch_for_work(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, work: Callable[..., Any]
) -> asyncio.Event:
    """Return what is set as soon as the module has given this work to the threads."""
    is_given, run = asyncio.Event(), getattr(module, name)

    async def give(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if function == work:
            # It is given before this task waits, so before anybody sees the event.
            is_given.set()
        return await run(function, *args, **kwargs)

    monkeypatch.setattr(module, name, give)
    return is_given


@pytest.mark.asyncio
async def test_what_words_wait_for_is_run_first_and_ends_last() -> None:
    order = list[str]()
    busy = BusyThreads()
    await asyncio.sleep(0)
    work = []
    for run in (run_db_late, run_db, run_db_soon):
        work.append(asyncio.ensure_future(run(order.append, run.__name__)))
        await asyncio.sleep(0)
    await busy.free_one()
    await asyncio.gather(*work)
    await busy.free_all()
    assert order == ["run_db_soon", "run_db", "run_db_late"]


def test_what_may_wait_is_overtaken_only_by_what_comes_within_its_time() -> None:
    threads, gate, order = DueThreads(1, "due"), threading.Event(), list[str]()
    threads.add(lambda: gate.wait(90), 0)
    for at in range(3):
        threads.add(lambda at=at: order.append(f"late {at}"), LATE)  # type: ignore[misc]
    threads.add(lambda: order.append("soon"), LATE - 1)
    last = threads.add(lambda: order.append("too late"), LATE)
    gate.set()
    last.result(60)
    assert order == ["soon", "late 0", "late 1", "late 2", "too late"]


def test_what_is_cancelled_is_not_run_and_what_fails_says_so() -> None:
    threads, gate, done = DueThreads(1, "due"), threading.Event(), list[str]()
    threads.add(lambda: gate.wait(90), 0)
    gone = threads.add(lambda: done.append("gone"), 0)
    wrong = threads.add(lambda: 1 // 0, 0)
    there = threads.add(lambda: done.append("there"), 0)
    assert gone.cancel()
    gate.set()
    there.result(60)
    assert isinstance(wrong.exception(60), ZeroDivisionError)
    assert done == ["there"]


@pytest.mark.asyncio
async def test_what_work_sets_is_its_callers_except_a_language() -> None:
    said: ContextVar[str] = ContextVar("said")

    def work() -> tuple[str, str | None]:
        found = said.get(), translation.get_language()
        said.set("by the work")
        translation.activate("fr")
        return found

    said.set("by the caller")
    with translation.override("de"):
        assert await run_db(work) == ("by the caller", "en")
        assert (said.get(), translation.get_language()) == ("by the work", "de")
        # Nor does a thread keep it for the work of others.
        languages = [await run_db(translation.get_language) for _ in range(2 * THREADS)]
    assert set(languages) == {"en"}


@pytest.mark.asyncio
async def test_what_work_awaits_runs_on_its_callers_loop() -> None:
    """Locks of pages belong to one loop."""

    async def find_loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    found = await run_db(async_to_sync(find_loop))
    assert found is asyncio.get_running_loop()


@pytest.mark.asyncio
async def test_a_title_comes_behind_the_end_of_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    order = list[str]()
    monkeypatch.setattr(titles, "find_opening", lambda _: order.append("title"))
    lease = await run_db(people_and_turns.started_turn)
    busy = BusyThreads()
    await asyncio.sleep(0)
    work = [asyncio.ensure_future(run_db_late(order.append, "end"))]
    await asyncio.sleep(0)
    work.append(asyncio.ensure_future(titles.write_title(lease, cast("Any", None), Switch())))
    await asyncio.sleep(0)
    await busy.free_one()
    await asyncio.gather(*work)
    await busy.free_all()
    assert order == ["end", "title"]


@pytest.mark.asyncio
async def test_another_persons_turn_begins_before_a_shown_answer_is_stored(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    order = list[str]()

    def note(owner: Any, name: str) -> None:
        before: Callable[..., Any] = getattr(owner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            order.append(name)
            return before(*args, **kwargs)

        monkeypatch.setattr(owner, name, call)

    note(supervisor_module, "claim_turn")
    note(TurnCalls, "_finish")
    close = TurnCalls.close

    async def close_while_another_asks(self: TurnCalls, *args: Any) -> Any:
        monkeypatch.setattr(TurnCalls, "close", close)
        turns.append(await queue("Hello"))
        busy = BusyThreads()
        is_stored = watch_for_work(monkeypatch, adapters, "run_db_late", self._finish)
        claim: Callable[..., Any] = vars(supervisor_module)["claim_turn"]
        is_claimed = watch_for_work(monkeypatch, supervisor_module, "run_db", claim)
        closing = asyncio.create_task(close(self, *args))
        await is_stored.wait()
        supervisor.launch(turns[1].pk)
        await is_claimed.wait()
        await busy.free_one()
        found = await closing
        await busy.free_all()
        return found

    turns = [await queue("Hello")]
    monkeypatch.setattr(TurnCalls, "close", close_while_another_asks)
    settings.AGENTWEB_TITLE_MODEL = "off"
    supervisor: Supervisor
    with server.start(pace=0) as emulator:
        settings.ANTHROPIC_BASE_URL = emulator.url
        async with supervising() as supervisor:
            supervisor.launch(turns[0].pk)
            assert (await ended(turns[0])).state == "done"
            assert (await ended(turns[1])).state == "done"
    assert order[:3] == ["claim_turn", "claim_turn", "_finish"]
