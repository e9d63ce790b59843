"""What is noted of a conversation agrees with what is there."""

from __future__ import annotations

import pytest

from conversations.log.contents import note_contents, read_contents
from conversations.models import Conversation, MailAccount, ToolSwitch
from conversations.reductions.pins import list_pins, pin_originals
from conversations.toolbox.mail_accounts import has_mail_account
from conversations.toolbox.tool_access import read_access
from tests.support import people_and_turns

pytestmark = pytest.mark.django_db


def test_a_plain_conversation_contains_a_turn_and_nothing_else() -> None:
    lease = people_and_turns.started_turn()
    row = people_and_turns.conversation_of(lease)
    assert read_contents(row).pins, "unless it was asked about, anything may be there"
    found = note_contents(row)
    assert read_contents(row) is found
    assert (found.live_turn, found.last) == (1, 1)
    assert not any(
        (found.changes, found.pins, found.decisions, found.switches, found.queue, found.mail)
    )
    people_and_turns.answered(lease)
    assert note_contents(row).live_turn == 0


def test_what_is_there_is_read_after_the_note_too() -> None:
    lease = people_and_turns.started_turn()
    people_and_turns.answered(lease)
    row = people_and_turns.conversation_of(lease)
    pin_originals(conversation_id=row.pk, actor_id=row.owner_id, ids=["msg_1"])
    ToolSwitch.objects.create(conversation=row, tool="read_file")
    MailAccount.objects.create(owner_id=row.owner_id, name="work")
    noted = Conversation.objects.get(pk=row.pk)
    found = note_contents(noted)
    assert found.pins
    assert found.switches
    assert found.mail
    assert list_pins(noted) == list_pins(row) != frozenset()
    assert read_access(noted) == read_access(row)
    assert has_mail_account(noted)
