"""A conversation file that was broken elsewhere is imported, can be read, and continues."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.audit.verify import Tally, verify_everything
from conversations.context.view import wire
from conversations.db import run_db
from conversations.models import Conversation, Transformation
from conversations.transfer.importing import import_recording
from conversations.transfer.recordings import read_record
from tests.faults.going_on import check_going_on, check_pages
from tests.faults.running_app import App, Chat
from tests.support.one_database import with_slice

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

USE = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
FOUND = {"type": "tool_result", "tool_use_id": "t1", "content": "blue"}
STRAY = FOUND | {"tool_use_id": "nobody"}
PAGE = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def answer(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


ASK, END = user(text("Find it")), answer(text("It is blue"))
FILES = {
    "call_twice": [ASK, answer(USE, USE), user(FOUND, FOUND), END],
    "results_too_many": [ASK, answer(USE), user(FOUND, FOUND, FOUND), END],
    "result_of_no_call": [ASK, answer(USE), user(FOUND, STRAY), END],
    "input_that_is_a_list": [ASK, answer(USE | {"input": [1]}), user(FOUND), END],
    "part_unknown": [user(text("Find it"), {"type": "hologram"}), END],
    "found_without_search": [ASK, answer(PAGE, text("It is blue"))],
    "all_at_once": [
        answer(text("I was first")), ASK, answer(USE, USE), user(FOUND, FOUND, FOUND), user(STRAY),
        answer(USE | {"name": "?"}),
    ],
}  # fmt: skip


def bring(chat: Chat, messages: list[dict[str, Any]]) -> Conversation:
    """Import a record with these messages for the person of a chat."""
    recording = read_record(wire.encode({"id": "rec-1", "messages": messages}).encode())
    return import_recording(user=chat.user, recording=recording, model=chat.conversation.model)


@pytest.mark.parametrize("name", with_slice(FILES))
async def test_a_broken_import_opens_and_goes_on_after_one_repair(app: App, name: str) -> None:
    async with app.chat() as chat:
        chat.conversation = await run_db(bring, chat, FILES[name])
        async with chat.watched():
            await check_pages(chat)
            await check_going_on(chat, repairs=1)
            await check_pages(chat)
            assert await run_db(lambda: list(verify_everything(Tally()))) == []


async def test_a_part_of_an_answer_that_only_the_api_knows_to_be_wrong_costs_one_refusal(
    app: App,
) -> None:
    """The API has block types unknown to this version: none is left out before it refuses it."""
    messages = [ASK, answer({"type": "hologram"}, text("It is blue"))]
    async with app.chat() as chat:
        chat.conversation = await run_db(bring, chat, messages)
        async with chat.watched():
            await check_going_on(chat, repairs=1, refused=1)
            await check_pages(chat)
            change = await run_db(Transformation.objects.get)
            assert "hologram" in change.reason
