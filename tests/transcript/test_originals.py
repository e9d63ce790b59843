"""Originals: whatever was cut can be had again by the id its notice names, by its owner's talk."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from conversations.agent.ports import ToolDone
from conversations.context.view import wire
from conversations.log import append
from conversations.log.leases import Lease
from conversations.models import Conversation
from conversations.transcript.originals import read_original, recall_original
from conversations.turns import tool_calls, versions
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db


def imported(lease: Lease, *blocks: dict[str, Any]) -> int:
    """Store results that no tool call of ours made."""
    return append.store_results(lease=lease, content=wire.encode(list(blocks)), estimate=1).seq


def result(id: str, content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def test_a_compacted_result_is_found_whole() -> None:
    played = stored_turns.played()
    assert read_original(played.conversation.pk, "toolu_1") == stored_turns.LONG


def test_a_message_is_found_by_its_number() -> None:
    played = stored_turns.played(title="What was the order?")
    assert read_original(played.conversation.pk, "1") == "What was the order?"
    assert read_original(played.conversation.pk, "3") == stored_turns.LONG


def test_an_imported_result_is_found_in_its_message() -> None:
    lease = people_and_turns.started_turn()
    image = {"type": "image", "source": {"type": "base64", "data": ""}}
    parts = [{"type": "text", "text": "one"}, image, {"type": "text", "text": "two"}]
    imported(lease, result("toolu_a", "all of it"), result('odd "id" \\ 100%_', parts))
    found = read_original(lease.conversation_id, "toolu_a")
    assert found == "all of it"
    assert read_original(lease.conversation_id, 'odd "id" \\ 100%_') == "one\n[image]\ntwo"


def test_the_model_recalls_nothing_of_another_path() -> None:
    played = stored_turns.played(title="Read my mail")
    records_of_first = ("toolu_1", "msg_1", "3")
    first = played.conversation.turns.get()
    people_and_turns.claimed(
        versions.edit_prompt(turn=first, text="Something else", client_id=uuid4())
    )
    row = Conversation.objects.get(pk=played.conversation.pk)
    assert [recall_original(row, each) for each in records_of_first] == [None] * 3
    assert recall_original(row, f"msg_{row.head}") == "Something else"
    assert read_original(row.pk, "toolu_1") == stored_turns.LONG


def test_the_model_recalls_what_stands_on_its_path() -> None:
    row = Conversation.objects.get(pk=stored_turns.played().conversation.pk)
    assert recall_original(row, "toolu_1") == recall_original(row, "3") == stored_turns.LONG
    assert [recall_original(row, each) for each in UNKNOWN] == [None] * len(UNKNOWN)


UNKNOWN = [
    "", "toolu_2", "toolu_", "%", "_", "0", "99", "-1", "²", "٣٣", "9" * 400, "a\0b", "\0", '"',
    "\\", "'; --", "toolu_1 ", "\U0001f600",
]  # fmt: skip


def test_an_unknown_id_is_nothing_and_no_error() -> None:
    played = stored_turns.played()
    assert [read_original(played.conversation.pk, each) for each in UNKNOWN] == [None] * len(
        UNKNOWN
    )


def test_nothing_of_another_conversation_is_found() -> None:
    stored_turns.played("ada")
    other = people_and_turns.started_turn(people_and_turns.person("eve"))
    assert read_original(other.conversation_id, "toolu_1") is None
    assert read_original(other.conversation_id, "3") is None


def test_a_tool_that_has_not_ended_has_no_result_yet() -> None:
    lease = people_and_turns.started_turn()
    stored_turns.close(
        lease, people_and_turns.opened(lease).call, people_and_turns.tool_call_ending("toolu_9")
    )
    assert read_original(lease.conversation_id, "toolu_9") is None
    done = ToolDone(wire.encode([{"type": "text", "text": "listed"}]), "ok")
    tool_calls.finish_tool(lease=lease, tool_use_id="toolu_9", done=done)
    assert read_original(lease.conversation_id, "toolu_9") == "listed"
