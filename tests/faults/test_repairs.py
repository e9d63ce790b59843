"""No conversation is ever locked: whatever broke its history, one recorded repair and it goes on.

Rows are broken as whoever owns the database can break them. After each of them the turn is
answered, later turns need no other repair, every later request is rebuilt from the record, and all
pages open.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from conversations.audit.verify import Problem, Tally, verify_everything
from conversations.db import run_db
from conversations.models import (
    ApiCall,
    ApiResult,
    Attachment,
    Blob,
    Conversation,
    Message,
    Transformation,
    Turn,
)
from tests.faults.whole import App, Chat, reductions
from tests.support.attached_files import PNG, kept
from tests.support.damaged_rows import (
    change_content,
    delete_row,
    list_messages,
    put_text,
    unguarded,
)
from tests.support.one_database import with_slice

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
Break = Callable[[Conversation], None]
#: What nobody who reads a conversation should have to know.
PROTOCOL = re.compile(r"block|index|tool_use|tool_result|messages\.|content\.|signature|protocol")


def lose_results(conversation: Conversation) -> None:
    delete_row(list_messages(conversation, "results")[0])


def empty_results(conversation: Conversation) -> None:
    put_text(list_messages(conversation, "results")[0], "[]")


def double_results(conversation: Conversation) -> None:
    change_content(list_messages(conversation, "results")[0], lambda blocks: blocks * 2)


def rename_call(conversation: Conversation) -> None:
    row = list_messages(conversation, "answer")[0]
    put_text(row, re.sub(r'"toolu_\w+"', '"toolu_other"', row.content))


def garble_answer(conversation: Conversation) -> None:
    row = list_messages(conversation, "answer")[-1]
    put_text(row, row.content[:-5])


def blank_answer(conversation: Conversation) -> None:
    change_content(
        list_messages(conversation, "answer")[-1], lambda _: [{"type": "text", "text": ""}]
    )


def put_unknown_part(conversation: Conversation) -> None:
    change_content(
        list_messages(conversation, "prompt")[0], lambda blocks: [*blocks, {"type": "hologram"}, 7]
    )


def garble_first_prompt(conversation: Conversation) -> None:
    put_text(list_messages(conversation, "prompt")[0], "not even JSON")


def lose_prompt(conversation: Conversation) -> None:
    delete_row(list_messages(conversation, "prompt")[0])


def turn_prompt_into_answer(conversation: Conversation) -> None:
    with unguarded():
        row = list_messages(conversation, "prompt")[0]
        Message.objects.filter(pk=row.pk).update(kind="answer")


def put_image_into_error(conversation: Conversation) -> None:
    def change(blocks: list[Any]) -> list[Any]:
        data = b64encode(PNG).decode()
        source = {"type": "base64", "media_type": "image/png", "data": data}
        return [blocks[0] | {"is_error": True, "content": [{"type": "image", "source": source}]}]

    change_content(list_messages(conversation, "results")[0], change)


def put_lonely_search(conversation: Conversation) -> None:
    call = {"type": "server_tool_use", "id": "srvtoolu_9", "name": "web_search", "input": {}}
    change_content(list_messages(conversation, "answer")[-1], lambda blocks: [call, *blocks])


BREAKS: list[Break] = [
    lose_results, empty_results, double_results, rename_call, garble_answer, blank_answer,
    put_unknown_part, garble_first_prompt, lose_prompt, turn_prompt_into_answer,
    put_image_into_error, put_lonely_search,
]  # fmt: skip


async def talk(chat: Chat) -> None:
    for words in ("Write the file plan.md with content: buy milk", "List files", "Hello"):
        assert (await chat.say(words)).state == "done"


@pytest.mark.parametrize("break_it", with_slice(BREAKS), ids=lambda one: one.__name__)
async def test_a_history_broken_in_the_database_goes_on_after_one_repair(
    app: App, break_it: Break
) -> None:
    async with app.chat() as chat:
        await talk(chat)
        await run_db(break_it, chat.conversation)
        await check_pages(chat)
        before = await run_db(last_call)
        # A search that nobody waits for any more is left out as every late one is.
        kind = "trim" if break_it is put_lonely_search else "repair"
        await check_going_on(chat, repairs=1, kind=kind)
        await check_pages(chat)
        problems = await run_db(lambda: list(verify_everything(Tally())))
        assert problems
        assert [one for one in problems if is_of_call_after(one, before)] == []


async def test_a_file_that_is_gone_is_left_out_of_what_is_sent(app: App) -> None:
    async with app.chat() as chat:
        await attach(chat, "A picture is missing")

        def lose() -> None:
            row = Attachment.objects.get()
            blob = Blob.objects.get(pk=row.data_id)
            with unguarded():
                Attachment.objects.filter(pk=row.pk).delete()
                rows = Blob.objects.filter(pk=blob.pk)
                rows._raw_delete(rows.db)

        await run_db(lose)
        await check_going_on(chat, repairs=1)
        await check_pages(chat)


async def test_a_change_that_cannot_be_read_any_more_is_passed_over(app: App) -> None:
    async with app.chat() as chat:
        await talk(chat)
        await run_db(empty_results, chat.conversation)
        await chat.say("Go on")

        def garble() -> None:
            with unguarded():
                Transformation.objects.update(edits="[[")

        await run_db(garble)
        await check_going_on(chat, repairs=2)


async def attach(chat: Chat, text: str) -> None:
    file = await run_db(kept, chat.user)
    path = f"/c/{chat.conversation.public_id}/send/"
    data = {"text": text, "client_id": str(uuid4()), "attachments": str(file.public_id)}
    answer = await run_db(chat.client.post, path, data, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    turn = await run_db(lambda: Turn.objects.latest("pk"))
    assert (await chat.ended(turn)).state == "done"


def last_call() -> int:
    return ApiCall.objects.latest("pk").pk


def is_of_call_after(problem: Problem, before: int) -> bool:
    return problem.table == "apicall" and problem.id.isdigit() and int(problem.id) > before


async def check_going_on(chat: Chat, *, repairs: int, kind: str = "repair") -> None:
    """Say three things: only the first is preceded by a change of the kind; all are answered."""
    for words in ("Go on then", "List files", "And once more"):
        turn = await chat.say(words)
        assert (turn.state, turn.error_text) == ("done", "")
        found = [row for row in await run_db(reductions, chat) if row[0] == kind]
        assert found == [(kind, "applied")] * repairs
    refused = await run_db(
        lambda: list(
            ApiResult.objects.exclude(error_message="").values_list("error_message", flat=True)
        )
    )
    assert not refused, (refused, await run_db(reductions, chat))
    note = (await run_db(lambda: Transformation.objects.filter(kind=kind).latest("pk"))).note
    number = (
        await run_db(lambda: Turn.objects.filter(conversation=chat.conversation).latest("pk"))
    ).number
    shown = " ".join(chat.text(number - 2).split())
    assert note in shown
    assert not PROTOCOL.search(note)
    assert await run_db(lambda: ApiCall.objects.filter(result=None).count()) == 0


async def check_pages(chat: Chat) -> None:
    """Open every page about the conversation."""
    place = f"/c/{chat.conversation.public_id}/"
    rows = chat.conversation.transformations.values_list("seq", flat=True)
    changes = [f"inspect/events/{seq}/" for seq in await run_db(lambda: list(rows))]
    calls = await run_db(lambda: ApiCall.objects.filter(conversation=chat.conversation).count())
    pages = ("", "inspect/", "inspect/now/", "export.md", "export.json", "export.html", "largest/")
    for path in (*pages, *changes, *[f"inspect/calls/{calls}/"] * bool(calls)):
        answer = await run_db(chat.client.get, place + path)
        assert answer.status_code == 200, place + path
