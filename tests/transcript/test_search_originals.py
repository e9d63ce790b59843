"""Searching what a conversation was shown and did: results, texts, inputs; of the shown path."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from conversations.context.view import wire
from conversations.log import append
from conversations.models import Conversation
from conversations.transcript.originals import read_original, recall_original
from conversations.transcript.search_originals import read_originals, search_originals
from conversations.turns import versions
from tests.support import people_and_turns, stored_turns
from tools.framework.tool import FoundOriginal

pytestmark = pytest.mark.django_db
ORDER = "number of the order 4711-ÄÖ"


def search(conversation: Conversation, query: str) -> list[FoundOriginal]:
    return asyncio.run(search_originals(list(read_originals(conversation)), query, 5))


def find(conversation: Conversation, query: str) -> list[str]:
    return [one.id for one in search(conversation, query)]


def played(**more: str) -> Conversation:
    return Conversation.objects.get(pk=stored_turns.played(**more).conversation.pk)


def test_results_texts_and_inputs_are_found_and_can_be_read() -> None:
    chat = played(title="Where is the order of the bakery?", value="orders.txt")
    assert find(chat, "bakery") == ["msg_1"]
    assert find(chat, ORDER)[0] == "toolu_1"
    assert recall_original(chat, "toolu_1/input") == "path: orders.txt"
    labels = {one.id: one.label for one in read_originals(chat)}
    assert labels["toolu_1/input"] == "your input for read_file orders.txt"
    assert labels["toolu_1"] == "read_file orders.txt"
    assert search(chat, ORDER)[0].also == "toolu_1/input"
    for one in search(chat, "order"):
        text = recall_original(chat, one.id)
        assert text is not None
        assert len(text) == one.chars
    assert recall_original(chat, "toolu_2/input") is None
    assert recall_original(chat, "msg_2/input") == "read_file\npath: orders.txt"
    ids = ("msg_1/input", "msg_3/input", "msg_x/input", f"msg_{'9' * 40}/input")
    assert [recall_original(chat, each) for each in ids] == [None] * 4
    assert find(chat, "zebra") == []


def test_what_is_in_view_is_marked_and_ranks_after_what_was_shortened() -> None:
    chat = played(title="What is the number of the order?")
    found = {one.id: one.is_shown for one in search(chat, ORDER)}
    assert next(iter(found)) == "toolu_1"
    assert (found["toolu_1"], found["msg_1"]) == (False, True)
    shown = {one.id: one.is_shown for one in read_originals(chat)}
    assert shown["toolu_1/input"]


def test_a_query_that_says_little_is_searched_beside_what_was_said_last() -> None:
    lease = people_and_turns.started_turn()
    for number in range(20):
        text = "the heron nests" if number == 3 else "a lark nests"
        block = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": text}
        append.store_results(lease=lease, content=wire.encode([block]), estimate=1)
    chat = Conversation.objects.get(pk=lease.conversation_id)
    assert find(chat, "nests")[0] == "toolu_19"
    stored_turns.reply(lease, (wire.encode({"type": "text", "text": "The heron?"}),), "end_turn")
    assert find(chat, "nests")[0] == "toolu_3"


def test_only_the_shown_version_is_searched() -> None:
    chat = played(title="About the walrus")
    first = chat.turns.get()
    people_and_turns.claimed(
        versions.edit_prompt(turn=first, text="About the otter", client_id=uuid4())
    )
    chat.refresh_from_db()
    assert find(chat, "walrus") == find(chat, ORDER) == []
    assert find(chat, "otter") == [f"msg_{chat.head}"]
    assert recall_original(chat, "toolu_1/input") is None


def test_nothing_of_another_conversation_is_found() -> None:
    stored_turns.played("ada")
    lease = people_and_turns.started_turn(people_and_turns.person("eve"))
    assert find(Conversation.objects.get(pk=lease.conversation_id), ORDER) == []


def test_copies_that_recall_gave_are_not_found_beside_their_originals() -> None:
    chat = played(tool="recall", value="toolu_0")
    assert {"toolu_1", "toolu_1/input"}.isdisjoint(find(chat, f"{ORDER} toolu_0"))


def test_a_result_of_the_api_is_found_and_can_be_read() -> None:
    lease = people_and_turns.started_turn()
    page = {"type": "web_search_result", "title": "Heron colony", "url": "https://a.example"}
    sealed = page | {"encrypted_content": "SEALED", "page_age": None}
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search"}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [sealed]}
    said = {"type": "text", "text": "They nest in colonies."}
    blocks = (call | {"input": {"query": "nests", "page": 2}}, result, said)
    stored_turns.reply(lease, tuple(map(wire.encode, blocks)), "end_turn")
    chat = Conversation.objects.get(pk=lease.conversation_id)
    text = "title: Heron colony\nurl: https://a.example"
    (found,) = (one for one in search(chat, "heron a.example") if one.id == "srvtoolu_1")
    assert found.chars == len(text)
    assert recall_original(chat, "srvtoolu_1") == read_original(chat.pk, "srvtoolu_1") == text
    assert recall_original(chat, "msg_2") == f"{text}\n\nThey nest in colonies."
    assert recall_original(chat, "srvtoolu_1/input") == "query: nests\npage: 2"
    assert found.label == "web_search nests page=2"
    assert find(chat, "SEALED") == []


def test_a_result_that_no_call_of_ours_made_is_found() -> None:
    lease = people_and_turns.started_turn()
    block = {"type": "tool_result", "tool_use_id": "toolu_a", "content": "the heron nests"}
    append.store_results(lease=lease, content=wire.encode([block]), estimate=1)
    chat = Conversation.objects.get(pk=lease.conversation_id)
    assert find(chat, "heron") == ["toolu_a"]
