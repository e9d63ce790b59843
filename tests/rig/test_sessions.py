"""S4, S5 and S34 with two web processes: a change made at one of them applies at the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from agentweb.bench.websocket_client import Refused
from tests.rig.client import Person, open_socket
from tests.rig.installations import Installation
from tests.rig.scenes import started_chat

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.only_mode("scaled", "embedded, there is one process"),
]
PASSWORD = "correct horse battery staple"
#: A change at the first process for a person whose page is open at the second.
Change = Callable[[Installation, Person], Awaitable[object]]


async def log_out(rig: Installation, at_first: Person) -> None:
    # A request of a page gets the same response as one of a fragment without a session.
    assert (await at_first.ask("POST", "/accounts/logout/", {})).status == 401


async def change_password(rig: Installation, at_first: Person) -> None:
    await rig.acall("tests.rig.site_actions:set_password", person=at_first.name, password=PASSWORD)


async def deactivate(rig: Installation, at_first: Person) -> None:
    await rig.acall("tests.rig.site_actions:deactivate", person=at_first.name)


async def elsewhere(rig: Installation, at_first: Person) -> None:
    """Log out all browsers of the person from another one."""
    other = await rig.acall("tests.rig.site_actions:another_session", person=at_first.name)
    browser = Person(at_first.ports, at_first.name)
    browser.cookies |= other
    assert (await browser.ask("POST", "/settings/account/others/", {})).status < 400


@pytest.mark.parametrize("change", [log_out, change_password, deactivate, elsewhere])
async def test_a_session_that_ends_at_one_process_closes_the_sockets_of_the_other(
    rig: Installation, change: Change
) -> None:
    first, second = rig.ports[:2]
    person = rig.person(ports=[second])
    chat, neighbour = await person.begin("Hello"), await started_chat(rig)
    assert await chat.ended() == "done"
    at_first = Person(lambda: [first], person.name, cookies=dict(person.cookies))
    await change(rig, at_first)
    at_first.cookies = dict(person.cookies)
    await chat.shows(lambda: chat.code == 4401)
    text = {"text": "Nobody says this", "client_id": "6a3f6a0e-5d0e-4a63-9be1-0a8d2f1f8b11"}
    for browser in (person, at_first):
        answer = await browser.ask("POST", f"{chat.path}send/", text)
        assert answer.status == 401, answer.text[:300]
        with pytest.raises(Refused):
            await open_socket(browser.ports()[0], chat._address, browser.headers)
    assert len(rig.turns(chat)) == 1
    assert await neighbour.say("I am still here") == "done"
    assert neighbour.code == 0
    person.chats.clear()
    await rig.acall("tests.rig.site_actions:give_back", person=person.name)
    await rig.check()


async def test_failures_at_both_log_in_pages_are_one_count(rig: Installation) -> None:
    person = rig.person()
    await rig.acall("tests.rig.site_actions:set_password", person=person.name, password=PASSWORD)

    async def enter(port: int, password: str) -> int:
        form = {"username": person.name, "password": password}
        answer = await Person(lambda: [port]).ask("POST", "/accounts/login/", form)
        return answer.status

    tries = [enter(rig.ports[at % 2], f"wrong {at}") for at in range(6)]
    found = await asyncio.gather(*tries)
    assert sorted(found) == [200] * 5 + [429]
    assert [await enter(port, PASSWORD) for port in rig.ports[:2]] == [429, 429]
    await rig.acall("tests.rig.site_actions:forget_log_ins")
    assert await enter(rig.ports[1], PASSWORD) == 302
