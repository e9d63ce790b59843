"""F30 to F34: processes killed during an answer, at moments that the model's barriers set."""

from __future__ import annotations

import asyncio

import pytest

from tests.rig.installations import Installation
from tests.rig.model import LAST, Model, saying, summarising, with_results
from tests.rig.scenes import LONG, SOME, kill, replace, started_chat

pytestmark = pytest.mark.asyncio
CLOSING = "conversations.turns.turns:finish_with_call:before"


@pytest.mark.parametrize("after", [None, 0, SOME, LAST])
async def test_f30_an_answer_whose_process_is_killed_is_interrupted_and_can_be_had_again(
    rig: Installation, model: Model, after: int | None
) -> None:
    chat = await started_chat(rig)
    held = model.hold(saying(f"Killed at {after}:"), after)
    await chat.send(f"Killed at {after}: {LONG}")
    await held.came()
    if after in (SOME, LAST):
        await chat.shows(lambda: len(chat.text(2)) > 300)
        while not await rig.acall("tests.rig.site_actions:draft", conversation=chat.conversation):
            await asyncio.sleep(0.2)
    shown, asked = chat.text(2), len(model.bodies())
    await kill(rig, chat)
    assert await chat.ended(2, seconds=rig.lease + 90) == "interrupted"
    kept = rig.call("tests.rig.site_actions:answers", conversation=chat.conversation)[1]
    assert bool(kept) == (after in (SOME, LAST)), (kept, shown)
    assert " ".join(kept.split()[:10]) in shown
    assert len(model.bodies()) == asked
    await chat.retry(2)
    await chat.shows(lambda: chat.number == 3)
    assert await chat.ended(3) == "done"
    await rig.check()


async def test_f30_an_answer_that_came_whole_but_was_not_stored_is_interrupted(
    rig: Installation, model: Model
) -> None:
    chat = await started_chat(rig)
    for process in list(rig.workers or rig.webs):
        process.kill()
        rig.restart(process, halts=[CLOSING])
    before = rig.halted().count(CLOSING)
    await chat.send(f"Stored never: {LONG}")
    await rig.halts(CLOSING, before + 1)
    await kill(rig, chat)
    assert await chat.ended(2, seconds=rig.lease + 90) == "interrupted"
    for process in list(rig.workers or rig.webs):
        replace(rig, process)
    await rig.check()


@pytest.mark.parametrize("tool", ["peek", "put", "fire"])
async def test_f32_a_turn_killed_behind_its_tools_goes_on_from_their_results(
    rig: Installation, model: Model, tool: str
) -> None:
    chat = await started_chat(rig)
    held = model.hold(with_results)
    before = len(rig.ran())
    await chat.send(f"please {tool}")
    await held.came()
    await kill(rig, chat)
    assert await chat.ended(2, seconds=rig.lease + 90) == "done"
    assert "has run" in chat.text(2)
    assert [name for name, _ in rig.ran()[before:]] == [tool]
    await rig.check()


async def test_f33_a_summary_whose_process_is_killed_is_made_again(
    rig: Installation, model: Model
) -> None:
    chat = await started_chat(rig, "Answer in 500 words, number 0")
    for number in range(1, 3):
        await chat.say(f"Answer in 500 words, number {number}")
    made = rig.call("tests.rig.site_actions:summaries", conversation=chat.conversation)
    held = model.hold(summarising)
    for number in range(4, 14):
        await chat.send(f"Answer in 500 words, number {number}")
        await chat.shows(lambda number=number: held.count or chat.state(number) == "done")
        if held.count:
            break
    await kill(rig, chat)
    assert await chat.ended(number, seconds=rig.lease + 90) == "interrupted"
    assert rig.call("tests.rig.site_actions:summaries", conversation=chat.conversation) == made
    assert await chat.say("Answer in 500 words, really the last one") == "done"
    now = rig.call("tests.rig.site_actions:summaries", conversation=chat.conversation)
    assert now == [*made, "applied"]
    await rig.check()


@pytest.mark.only_mode("scaled", "embedded, the answer runs in the web process: F30")
async def test_f34_a_killed_web_process_takes_no_answer_along(
    rig: Installation, model: Model
) -> None:
    chat = await started_chat(rig)
    tabs = [chat, *[await chat.person.open(chat.path) for _ in range(3)]]
    held = model.hold(saying("Without the web"), SOME)
    await chat.send(f"Without the web: {LONG}")
    await held.came()
    for web in list(rig.webs):
        await asyncio.to_thread(replace, rig, web)
    held.release()
    for tab in tabs:
        assert await tab.ended(2) == "done"
        assert tab.opened > 1
    assert [turn["takeovers"] for turn in rig.turns(chat)] == [0, 0]
    await rig.check()
