"""The row of a tool call, or its stored output, that cannot be read ends no chat and no page.

What a call was given and gave stands in the messages, too, and is recalled from there.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.urls import reverse

from conversations.audit.verify import Tally, verify_everything
from conversations.context.view.searched_originals import INPUT
from conversations.db import run_db
from conversations.models import Blob, Conversation, ToolCall
from conversations.toolbox.sources import (
    Source,
    iterate_texts,
    list_arguments,
    list_private_sources,
)
from conversations.transcript.originals import recall_original
from tests.faults.going_on import check_pages, forget_fold, talk
from tests.faults.running_app import App
from tests.faults.test_broken_imports import ASK, END, FOUND, USE, answer, bring, user
from tests.support.damaged_rows import list_messages, put_bytes, unguarded

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
BYTES = pytest.mark.only_database("sqlite", "PostgreSQL stores no text that is not UTF-8")


def first_call() -> ToolCall:
    return ToolCall.objects.only("tool_use_id", "output_id").earliest("pk")


def spoil_output() -> None:
    put_bytes(Blob(pk=first_call().output_id), "text")


def garble_output() -> None:
    with unguarded():
        Blob.objects.filter(pk=first_call().output_id).update(text='["')


def spoil_input() -> None:
    put_bytes(first_call(), "input")


def garble_input() -> None:
    with unguarded():
        ToolCall.objects.filter(pk=first_call().pk).update(input='{"')


def recall(conversation: Conversation) -> list[str | None]:
    """Return what the first call gave and what it was given, as the model recalls them."""
    fresh, key = Conversation.objects.get(pk=conversation.pk), first_call().tool_use_id
    return [recall_original(fresh, key), recall_original(fresh, f"{key}{INPUT}")]


def read_sources(conversation: Conversation) -> list[bool]:
    """Return of each source of calls and imports, newest first, whether it can be compared."""
    fresh = Conversation.objects.get(pk=conversation.pk)
    assert list_private_sources(fresh)
    assert isinstance(list_arguments(fresh), list)
    texts = iterate_texts(fresh, with_pdfs=True)
    return [one.is_whole for one in texts if one.source.origin != "typed"]


@pytest.mark.parametrize(
    ("break_it", "is_whole"),
    [
        pytest.param(spoil_output, False, marks=BYTES),
        (garble_output, False),
        pytest.param(spoil_input, True, marks=BYTES),
        (garble_input, True),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
async def test_a_call_that_cannot_be_read_is_recalled_from_its_messages_and_the_chat_goes_on(
    app: App, break_it: Callable[[], None], *, is_whole: bool
) -> None:
    async with app.chat() as chat:
        await talk(chat)
        before = await run_db(recall, chat.conversation)
        assert all(before)
        await run_db(lambda: ToolCall.objects.update(is_private=True))
        await run_db(break_it)
        await check_pages(chat)
        assert await run_db(recall, chat.conversation) == before
        assert await run_db(read_sources, chat.conversation) == [True, is_whole]
        key = (await run_db(first_call)).tool_use_id
        whole = reverse("tool_output", args=[chat.conversation.public_id, key])
        assert (await run_db(chat.client.get, whole)).status_code == 200
        forget_fold(chat)
        for words in ("Go on then", "List files"):
            turn = await chat.say(words)
            assert (turn.state, turn.error_text) == ("done", "")
        await check_pages(chat)
        assert [one.table for one in await run_db(lambda: list(verify_everything(Tally())))]


@BYTES
async def test_imported_results_that_are_not_utf_8_stay_private_and_are_not_compared(
    app: App,
) -> None:
    async with app.chat() as chat:
        chat.conversation = await run_db(bring, chat, [ASK, answer(USE), user(FOUND), END])
        assert await run_db(read_sources, chat.conversation) == [True]
        await run_db(lambda: put_bytes(list_messages(chat.conversation, "results")[0]))
        assert await run_db(read_sources, chat.conversation) == [False]
        fresh = await run_db(Conversation.objects.get, pk=chat.conversation.pk)
        assert await run_db(list_private_sources, fresh) == (Source("imported"),)
