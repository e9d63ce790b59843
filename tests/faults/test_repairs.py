"""No conversation is ever locked: after one recorded repair of its history it continues.

Rows are broken as the owner of the database can break them. After each case the turn is answered,
later turns need no other repair, every later request is rebuilt from the record, and all pages
open. Faults from outside: `test_broken_imports`, `test_lying_servers`.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from conversations.audit.verify import Tally, verify_everything
from conversations.db import run_db
from conversations.models import (
    Attachment,
    Blob,
    Conversation,
    Message,
    Transformation,
    Turn,
    WebSearch,
)
from conversations.toolbox.sources import Source, iterate_texts, list_private_sources, list_typed
from conversations.toolbox.tool_access import choose_web_search
from conversations.transcript.originals import recall_original
from conversations.transcript.search_originals import read_originals
from tests.faults.going_on import (
    check_going_on,
    check_pages,
    forget_fold,
    is_of_call_after,
    last_call,
    talk,
)
from tests.faults.running_app import App, Chat
from tests.support.attached_files import PNG, kept
from tests.support.damaged_rows import (
    change_content,
    delete_row,
    list_messages,
    put_bytes,
    put_text,
    unguarded,
)
from tests.support.one_database import with_slice
from tests.support.shared_links import path_of, shared

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
Break = Callable[[Conversation], None]


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


def put_half_a_pair(conversation: Conversation) -> None:
    """As an older version may have stored it; the API refuses it in any text."""
    for kind in ("prompt", "answer", "results"):
        row = list_messages(conversation, kind)[0]
        put_text(row, re.sub(r'("(?:text|content)":")', r"\1\\ud83d", row.content))


BREAKS: list[Break] = [
    lose_results, empty_results, double_results, rename_call, garble_answer, blank_answer,
    put_unknown_part, garble_first_prompt, lose_prompt, turn_prompt_into_answer,
    put_image_into_error, put_lonely_search, put_half_a_pair,
]  # fmt: skip


@pytest.mark.parametrize("kind", ["prompt", "answer", "results"])
@pytest.mark.only_database("sqlite", "PostgreSQL stores no text that is not UTF-8")
async def test_a_message_that_is_not_utf_8_is_left_out_and_the_chat_goes_on(
    app: App, kind: str
) -> None:
    async with app.chat() as chat:
        await talk(chat)
        await run_db(lambda: put_bytes(list_messages(chat.conversation, kind)[0]))
        await check_going_on(chat, repairs=1)
        await check_pages(chat)
        assert await run_db(read_for_tools, chat.conversation, kind) == ""


@pytest.mark.only_database("sqlite", "PostgreSQL stores no text that is not UTF-8")
async def test_a_file_of_a_prompt_that_is_not_utf_8_stays_private_and_is_shown_to_nobody(
    app: App,
) -> None:
    async with app.chat() as chat:
        await attach(chat, "A picture")
        file, link = await run_db(Attachment.objects.get), await run_db(shared, chat.conversation)
        place = path_of(link)
        path = f"{place}files/{file.public_id}"
        assert (await run_db(chat.client.get, path)).status_code == 200
        await run_db(lambda: put_bytes(list_messages(chat.conversation, "prompt")[0]))
        await check_going_on(chat, repairs=1)
        await check_pages(chat)
        fresh = await run_db(Conversation.objects.get, pk=chat.conversation.pk)
        assert Source("attached") in await run_db(list_private_sources, fresh)
        texts = await run_db(lambda: list(iterate_texts(fresh, with_pdfs=True)))
        assert [one.is_whole for one in texts if one.source.origin == "attached"] == [False]
        assert (await run_db(chat.client.get, place)).status_code == 200
        assert (await run_db(chat.client.get, path)).status_code == 404


@pytest.mark.only_database("sqlite", "PostgreSQL stores no text that is not UTF-8")
async def test_an_answer_with_searches_that_is_not_utf_8_is_left_out_and_the_chat_goes_on(
    app: App,
) -> None:
    async with app.chat() as chat:
        key = chat.conversation.pk
        await run_db(choose_web_search, conversation_id=key, choice=WebSearch.ALONE)
        assert (await chat.say("Search the web for green tea")).state == "done"
        await run_db(lambda: put_bytes(list_messages(chat.conversation, "answer")[-1]))
        await check_pages(chat)
        await check_going_on(chat, repairs=1)
        await check_pages(chat)


def read_for_tools(conversation: Conversation, kind: str) -> str:
    """Read what tools read of a whole conversation; return the text of its first message."""
    fresh = Conversation.objects.get(pk=conversation.pk)
    assert list_typed(fresh)
    assert any(one.text for one in read_originals(fresh))
    row = Message.objects.filter(conversation=fresh, kind=kind).order_by("seq").only("seq").first()
    assert row is not None
    return recall_original(fresh, f"msg_{row.seq}") or ""


@pytest.mark.parametrize("break_it", with_slice(BREAKS), ids=lambda one: one.__name__)
async def test_a_history_broken_in_the_database_goes_on_after_one_repair(
    app: App, break_it: Break
) -> None:
    async with app.chat() as chat:
        await talk(chat)
        await run_db(break_it, chat.conversation)
        await check_pages(chat)
        before = await run_db(last_call)
        # A late search result that no call waits for is left out, as always.
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


async def test_thinking_whose_signature_was_changed_is_left_out(app: App) -> None:
    async with app.chat() as chat:
        await talk(chat)

        def spoil() -> None:
            row = Message.objects.filter(content__contains='"signature"').earliest("seq")
            put_text(row, re.sub(r'("signature":")\w{8}', r"\1AAAAAAAA", row.content))

        await run_db(spoil)
        await check_going_on(chat, repairs=1, kind="rebind", refused=1)
        await check_pages(chat)


async def test_a_change_that_cannot_be_read_any_more_is_passed_over(app: App) -> None:
    async with app.chat() as chat:
        await talk(chat)
        await run_db(empty_results, chat.conversation)
        forget_fold(chat)
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
