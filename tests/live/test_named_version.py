"""The page version that a chat names, so that its socket sends no snapshot it does not need."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conversations.agent.events import TitleChanged
from conversations.db import run_db
from conversations.library.conversations import rename_conversation
from conversations.live.publish import announce
from conversations.log.leases import Lease
from conversations.models import Conversation, Turn
from tests.support import approval_turns, people_and_turns, toy_tools
from tests.web.pages import client_of
from tests.web.tabs import connected

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


def find_conversation(lease: Lease) -> Conversation:
    return Turn.objects.select_related("conversation__owner").get(pk=lease.turn_id).conversation


def read_named_version(conversation: Conversation, query: str = "") -> str:
    """Return the version in the page that the owner loads; "" if there is none."""
    path = f"/c/{conversation.public_id}/{query}"
    page = client_of(conversation.owner).get(path).content.decode()
    found = re.search(r'data-page-version="(\d+)"', page)
    return found[1] if found else ""


async def test_a_question_keeps_its_buttons_when_the_socket_connects(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A snapshot would replace the button between the press of the pointer and its release."""
    toy_tools.install(monkeypatch, tmp_path / "ran")
    lease, _ = await run_db(approval_turns.waiting_turn, approval_turns.POST)
    conversation = await run_db(find_conversation, lease)
    version = await run_db(read_named_version, conversation)
    async with connected(conversation, query=f"after=0&version={version}") as found:
        assert await found.receive_nothing(0.2)
        await run_db(rename_conversation, conversation=conversation, title="Another name")
        await announce(conversation.pk, TitleChanged())
        assert "Another name" in await found.receive_from(timeout=60)


@pytest.mark.parametrize("query", ["", "?m=1", "?after=0", "?before=2"])
async def test_the_page_of_a_running_turn_names_none(query: str) -> None:
    """A named version says that no text is on its way, and ends it in the topic of all tabs."""
    lease = await run_db(people_and_turns.started_turn)
    await run_db(people_and_turns.answered, lease)
    conversation = await run_db(find_conversation, lease)
    assert await run_db(read_named_version, conversation, query) == str(conversation.version)
    await run_db(people_and_turns.next_turn, conversation)
    assert await run_db(read_named_version, conversation, query) == ""
