"""F61 to F70: actions of browsers and administrators in mid-answer; F63 is in tests/edge."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.rig.client import Chat, Person
from tests.rig.installations import Installation
from tests.rig.model import Model, saying

pytestmark = pytest.mark.asyncio
SLOWLY = "answer in 300 words emulator:pace=0.01"
#: Deltas after which some of the text is shown.
SOME = 60
LIVE = (
    "SELECT count(*) FROM conversations_turn t JOIN conversations_conversation c"
    " ON c.id = t.conversation_id WHERE c.public_id = %s AND t.state NOT IN"
    " ('done', 'failed', 'cancelled', 'interrupted')"
)


async def call(rig: Installation, function: str, **arguments: Any) -> Any:
    return await asyncio.to_thread(rig.call, f"tests.rig.{function}", **arguments)


async def reload(tab: Chat) -> None:
    """Reload a tab, its socket cut wherever it was."""
    await tab.close()
    await tab.load()
    tab.follow()


async def test_f61_a_hundred_reloads_of_ten_tabs_end_with_what_is_stored(
    rig: Installation, model: Model
) -> None:
    chat = await rig.person().begin("Hello")
    await chat.ended()
    tabs = [chat, *[await chat.person.open(chat.path) for _ in range(9)]]
    held = model.hold(saying("Reloaded"), SOME)
    await chat.send(f"Reloaded: {SLOWLY}")
    await held.came()
    for number in range(100):
        if number == 30:
            held.release()
        await reload(tabs[number % 10])
    for tab in tabs:
        assert await tab.ended(2) == "done"
    assert [
        turn["number"]
        for turn in await call(rig, "site_actions:turns", conversation=chat.conversation)
    ] == [1, 2]
    await rig.check()


async def test_f64_two_hundred_pages_are_told_of_a_restart_and_are_in_step_after_it(
    models_of_the_run: dict[str, Model], rig_folder: Path
) -> None:
    with Installation.embedded(rig_folder, models_of_the_run["embedded"]) as rig:
        people = await asyncio.to_thread(rig.persons, 10)
        tabs: list[Chat] = []
        for person in people:
            # As in a page: the first pause is at most one second, the longest ten.
            person.pause, person.longest_pause = 0.5, 10.0
            chat = await person.begin("Hello")
            await chat.ended()
            await chat.load()
            tabs += [chat, *(twin(chat) for _ in range(19))]
        try:
            await asyncio.gather(*(tab.shows(lambda tab=tab: tab.frames > 0) for tab in tabs))
            assert len(tabs) == 200
            rig.webs[0].terminate()
            await asyncio.to_thread(rig.webs[0].wait)
            for tab in tabs:
                told = tab.page.find("restarting")
                assert told is not None
                assert told.attributes["data-within"] == "10"
            before = [tab.opened for tab in tabs]
            await asyncio.to_thread(rig.restart, rig.webs[0])
            sent = await asyncio.gather(*(person.chats[0].send("After it") for person in people))
            assert {answer.status for answer in sent} == {200}
            for tab in tabs:
                assert await tab.ended(2) == "done"
            assert [tab.opened for tab in tabs] == [count + 1 for count in before]
            for person in people:
                fresh = (await person.chats[0].fresh()).turns
                mine = [tab for tab in tabs if tab.person is person]
                assert all(tab.page.turns == fresh and not tab.page.missed for tab in mine)
            await rig.check()
        finally:
            for tab in tabs:
                await tab.close()


def twin(chat: Chat) -> Chat:
    """Open another tab on a conversation, without loading the same page again."""
    other = Chat(chat.person, chat.path, deepcopy(chat.page), _address=chat._address)
    other.follow()
    return other


async def test_f68_of_many_sends_at_once_one_turn_runs_and_each_is_taken_once(
    rig: Installation, model: Model
) -> None:
    chat = await rig.person().begin("Hello")
    await chat.ended()
    other = await chat.person.open(chat.path)
    held = model.hold(saying("Number"), 0, times=100)
    names = [str(uuid4()) for _ in range(25)]
    # Each of fifty is sent twice: from both tabs, or again from one that got no answer.
    answers = await asyncio.gather(
        *(tab.send(f"Number {at}", name) for tab in (chat, other) for at, name in enumerate(names))
    )
    assert {answer.status for answer in answers} <= {200, 409}
    taken = {(sent.client_id, sent.text) for sent in chat.person.acknowledged[1:]}
    assert 1 < len(taken) <= len(names)
    await held.came()
    assert await call(rig, "site_actions:run", statement=LIVE.replace("%s", quoted(rig, chat))) == [
        [1]
    ]
    held.release()
    model.let_go()
    for tab in (chat, other):
        await tab.shows(lambda tab=tab: tab.number == 1 + len(taken), 90)
        assert await tab.ended(seconds=90) == "done"
    # Repeated messages are acknowledged more than once but stored once.
    chat.person.acknowledged = [*dict.fromkeys(chat.person.acknowledged)]
    await rig.check()


def quoted(rig: Installation, chat: Chat) -> str:
    """Return the id of a conversation as the rig's database writes it."""
    name = chat.conversation if rig.mode == "scaled" else chat.conversation.replace("-", "")
    return f"'{name}'"


@pytest.mark.parametrize(
    ("change", "state", "code"),
    [
        ("deactivate", "failed", "inactive"),
        ("cut_budget", "failed", "budget"),
        ("take_tool", "done", ""),
        ("delete_chat", "cancelled", ""),
    ],
)
async def test_f70_who_may_no_more_is_stopped_before_the_next_tool_and_call(
    rig: Installation, model: Model, change: str, state: str, code: str
) -> None:
    person: Person = rig.person()
    chat = await person.begin("Hello")
    await chat.ended()
    held = model.hold(saying("please put"), 0)
    await chat.send("please put")
    await held.came()
    ran, asked = len(rig.ran()), len(model.bodies())
    if change == "delete_chat":
        assert (await chat.post("menu/delete", {})).status < 400
    else:
        await call(rig, f"site_actions:{change}", person=person.name)
    held.release()
    await rig.rest()
    turn = (await call(rig, "site_actions:turns", conversation=chat.conversation))[-1]
    assert (turn["state"], turn["error_code"]) == (state, code)
    assert len(rig.ran()) == ran
    # A person who lost only a tool is informed, and the conversation continues.
    assert len(model.bodies()) - asked == (change == "take_tool")
    if change in ("deactivate", "delete_chat"):
        await chat.shows(lambda: chat.code == (4401 if change == "deactivate" else 4404))
        person.chats.clear()
    await call(rig, "site_actions:give_back", person=person.name)
    await rig.check()
