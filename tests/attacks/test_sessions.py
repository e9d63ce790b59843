"""Sessions that end: pages and posts at once, open sockets within seconds, on every process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.tokens import default_token_generator
from django.test import Client
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from conversations.db import run_db
from conversations.live import watch
from conversations.models import Conversation, Session, Turn, User
from tests.live.test_consumer import closed_with, connected, socket
from tests.support import people_and_turns, stored_turns

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
PASSWORD = "correct horse battery"
#: How a session ends: what is done by whom (the same browser, another of the person's, staff).
Change = Callable[[Client, Client, User], Any]


def log_out(client: Client, other: Client, user: User) -> Any:
    return client.post("/accounts/logout/")


def log_out_elsewhere(client: Client, other: Client, user: User) -> Any:
    return other.post("/settings/account/others/")


def log_out_everywhere(client: Client, other: Client, user: User) -> Any:
    return other.post("/settings/account/everywhere/")


def log_out_one(client: Client, other: Client, user: User) -> Any:
    page = client.get("/settings/account/sessions/")
    mine = next(row.name for row in page.context["rows"] if row.is_current)
    return other.post("/settings/account/sessions/end/", {"name": mine})


def change_password(client: Client, other: Client, user: User) -> Any:
    new = "another horse battery"
    sent = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    return other.post("/settings/account/", sent)


def staff_deactivate(client: Client, other: Client, user: User) -> Any:
    User.objects.filter(pk=user.pk).update(is_active=False)


def reset_the_password(client: Client, other: Client, user: User) -> Any:
    name = urlsafe_base64_encode(force_bytes(user.pk))
    token = default_token_generator.make_token(User.objects.get(pk=user.pk))
    stranger, new = Client(), "yet another horse battery"
    form = stranger.get(f"/accounts/reset/{name}/{token}/")
    return stranger.post(form["Location"], {"new_password1": new, "new_password2": new})


def delete_the_session(client: Client, other: Client, user: User) -> Any:
    Session.objects.filter(session_key=key_of(client)).delete()


ENDS = (log_out, log_out_elsewhere, log_out_everywhere, log_out_one, change_password,
        staff_deactivate, reset_the_password, delete_the_session)  # fmt: skip


def key_of(client: Client) -> str:
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def entered() -> tuple[Client, Client, User, Conversation]:
    """One person in two browsers."""
    place = stored_turns.played()
    place.user.set_password(PASSWORD)
    place.user.save()
    clients = []
    for _ in range(2):
        client = Client()
        client.post("/accounts/login/", {"username": "ada", "password": PASSWORD})
        clients.append(client)
    return clients[0], clients[1], place.user, place.conversation


@pytest.mark.parametrize("change", ENDS)
async def test_a_session_that_ends_closes_its_socket_and_its_posts_are_refused(
    change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert watch.SECONDS <= 5
    monkeypatch.setattr(watch, "SECONDS", 0.1)
    client, other, user, conversation = await run_db(entered)
    async with connected(conversation, key_of(client)) as found:
        await found.receive_from(timeout=60)
        done = await run_db(change, client, other, user)
        assert done is None or done.status_code == 302
        assert await asyncio.wait_for(closed_with(found), 60) == 4401
    before = await run_db(Turn.objects.count)

    def posted() -> list[int]:
        chat = f"/c/{conversation.public_id}/"
        return [
            client.post(f"{chat}send/", {"text": "Hello"}).status_code,
            client.post(f"{chat}send/", {"text": "x"}, headers={"HX-Request": "true"}).status_code,
            client.get(chat).status_code,
        ]

    assert await run_db(posted) == [302, 401, 302]
    assert await run_db(Turn.objects.count) == before
    again = socket(f"/ws/c/{conversation.public_id}/", key_of(client))
    accepted, _ = await again.connect(timeout=60)
    assert not accepted


@pytest.mark.parametrize("change", [log_out, log_out_elsewhere, change_password])
async def test_the_other_browser_stays_where_only_one_was_meant(
    change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "SECONDS", 0.1)
    client, other, user, conversation = await run_db(entered)
    await run_db(change, client, other, user)
    async with connected(conversation, await run_db(key_of, other)) as found:
        await found.receive_from(timeout=60)
        await asyncio.sleep(0.5)
        status = await run_db(lambda: other.get("/c/new/").status_code)
        assert status == 200
        closing = asyncio.create_task(closed_with(found))
        await asyncio.sleep(0.3)
        assert not closing.done()
        closing.cancel()


async def test_who_is_no_longer_staff_reads_nobodys_content_with_the_same_session() -> None:
    def reviewed() -> list[int]:
        place = stored_turns.played()
        zoe = people_and_turns.person("zoe", is_staff=True, is_superuser=True)
        client = Client()
        client.force_login(zoe)
        page = f"/admin/conversations/conversation/{place.conversation.pk}/read/"
        before = client.get(page).status_code
        User.objects.filter(pk=zoe.pk).update(is_superuser=False)
        without = client.get(page).status_code
        User.objects.filter(pk=zoe.pk).update(is_staff=False)
        return [before, without, client.get(page).status_code]

    assert await run_db(reviewed) == [200, 403, 302]


async def test_no_socket_is_opened_to_what_is_somebody_elses_and_no_frame_asks_for_it() -> None:
    def people() -> tuple[Conversation, Conversation, dict[str, str]]:
        place, other = stored_turns.played("ada"), stored_turns.played("eve")
        keys = {}
        for kind in ("eve", "bob", "root"):
            user = User.objects.filter(username=kind).first() or people_and_turns.person(
                kind, is_staff=True, is_superuser=kind == "root"
            )
            client = Client()
            client.force_login(user)
            keys[kind] = key_of(client)
        return place.conversation, other.conversation, keys

    theirs, own, keys = await run_db(people)
    for key in (*keys.values(), "", "x" * 32):
        for path in (f"/ws/c/{theirs.public_id}/", f"/ws/c/{theirs.public_id}/?after=0"):
            accepted, _ = await socket(path, key).connect(timeout=60)
            assert not accepted
    before = await run_db(people_and_turns.everything)
    named = str(theirs.public_id)
    async with connected(own, keys["eve"]) as found:
        await found.receive_from(timeout=60)
        for kind in ("send", "resume", "stop", "approve", "edit", "retry", "subscribe", "join"):
            for more in ('"last_seq":0', '"text":"x"', '"turn":1,"generation":9'):
                frame = f'{{"type":"{kind}","conversation":"{named}",{more}}}'
                await found.send_to(text_data=frame)
        assert await found.receive_nothing(0.3)
    assert await run_db(people_and_turns.everything) == before
