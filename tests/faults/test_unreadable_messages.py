"""With a message that cannot be read a person still edits, asks again and forks; staff still read.

What is damaged is left out of what is made of it, and named by the verification. A change that
would need it is refused in words.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.urls import reverse

from conversations.db import run_db
from conversations.inspector.review import list_messages as list_for_review
from conversations.models import Conversation, Message, Pin, Proposal, Transformation, Turn
from tests.faults.going_on import check_pages, forget_fold, talk
from tests.faults.running_app import App, Chat
from tests.faults.test_repairs import attach
from tests.support.damaged_rows import list_messages, put_bytes, put_text

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
SAID = "Say it in other words"
DAMAGED = "This needs a part of the chat that is damaged in the database,"
DAMAGES = [
    pytest.param(
        "bytes", marks=pytest.mark.only_database("sqlite", "PostgreSQL stores no other bytes")
    ),
    "garbled",
]


def damage(conversation: Conversation, kind: str, how: str) -> None:
    row = list_messages(conversation, kind)[0]
    if how == "bytes":
        put_bytes(row)
    else:
        put_text(row, '[{"type":"text"')


async def post(chat: Chat, name: str, **data: Any) -> Any:
    path = reverse(name, args=[chat.conversation.public_id, 1])
    return await run_db(chat.client.post, path, data)


@pytest.mark.parametrize("how", DAMAGES)
async def test_a_prompt_that_cannot_be_read_is_written_anew_and_not_sent_again(
    app: App, how: str
) -> None:
    async with app.chat() as chat:
        await talk(chat)
        await run_db(damage, chat.conversation, "prompt", how)
        again = await post(chat, "retry")
        assert again.status_code == 409
        assert "There is no message here to send again" in again.content.decode()
        editor = reverse("edit", args=[chat.conversation.public_id, 1])
        assert (await run_db(chat.client.get, editor)).status_code == 200
        name = uuid4()
        assert (await post(chat, "edit", text=SAID, client_id=str(name))).status_code == 302
        turn = await run_db(lambda: Turn.objects.get(client_id=name))
        assert (await chat.ended(turn)).state == "done"
        prompt = await run_db(lambda: turn.messages.get(kind="prompt"))
        assert prompt.content == f'[{{"type":"text","text":"{SAID}"}}]'
        await check_pages(chat)


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("kind", ["prompt", "answer", "results"])
async def test_a_chat_with_a_message_that_cannot_be_read_is_forked_and_reviewed(
    app: App, kind: str, how: str
) -> None:
    async with app.chat() as chat:
        await talk(chat)
        await run_db(damage, chat.conversation, kind, how)
        assert len(await run_db(list_for_review, chat.conversation, 0)) == 10
        forked = await post(chat, "fork")
        assert forked.status_code == 302
        key = UUID(forked["Location"].strip("/").split("/")[-1])
        chat.conversation = await run_db(Conversation.objects.get, public_id=key)
        await check_pages(chat)
        turn = await chat.say("Go on then")
        assert (turn.state, turn.error_text) == ("done", "")


def find_first(conversation: Conversation, kind: str) -> str:
    """Return the id of the first message of a kind."""
    rows = Message.objects.filter(conversation=conversation, kind=kind).order_by("seq")
    return f"msg_{rows.values_list('seq', flat=True)[0]}"


def count_changes() -> list[int]:
    return [kind.objects.count() for kind in (Transformation, Pin, Proposal)]


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("kind", ["prompt", "answer", "results"])
async def test_a_change_that_needs_a_message_that_cannot_be_read_is_refused_in_words(
    app: App, kind: str, how: str
) -> None:
    async with app.chat() as chat:
        await talk(chat)
        name = await run_db(find_first, chat.conversation, kind)
        await run_db(damage, chat.conversation, kind, how)
        before = await run_db(count_changes)

        async def refused(path: str, **data: str) -> bool:
            place = reverse(path, args=[chat.conversation.public_id])
            answer = await run_db(chat.client.post, place, data)
            return (answer.status_code, DAMAGED in answer.content.decode()) == (400, True)

        for path in ("pin", "include"):
            assert await refused(path, id=name), path
        assert await refused("exclude", id=name) == (kind == "answer")
        assert await refused("ask_summary") == (kind == "prompt")
        assert await run_db(count_changes) == before
        await check_previews(chat, is_refused=kind == "prompt")
        forget_fold(chat)
        turn = await chat.say("Go on then")
        assert (turn.state, turn.error_text) == ("done", "")
        # What is damaged is left out now, and still cannot be sent in full.
        await check_previews(chat, is_refused=False)
        assert await refused("pin", id=name)


async def check_previews(chat: Chat, *, is_refused: bool) -> None:
    place = reverse("compact", args=[chat.conversation.public_id])
    for wanted in ("results", "turns", "summary"):
        answer = await run_db(chat.client.get, place, {"want": wanted})
        is_said = DAMAGED in answer.content.decode()
        assert (answer.status_code, is_said) == (200, is_refused and wanted != "results")


@pytest.mark.parametrize("how", DAMAGES)
async def test_a_file_is_sent_after_a_message_with_a_file_that_cannot_be_read(
    app: App, how: str
) -> None:
    async with app.chat() as chat:
        await attach(chat, "Look at this")

        def spoil() -> None:
            [row] = list_messages(chat.conversation, "prompt")
            put_bytes(row) if how == "bytes" else put_text(row, row.content[:-1])

        await run_db(spoil)
        await attach(chat, "And at this")
        await check_pages(chat)
