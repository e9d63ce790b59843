"""The oracle finds wrong rows, and checks again only what has changed."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.db import connection

from conversations.models import BudgetWindow, Message
from tests.rig.oracle import check
from tests.support import stored_turns
from tests.support.environment import DATABASE

pytestmark = pytest.mark.django_db


def test_what_was_acknowledged_and_is_not_stored_as_it_was_is_lost() -> None:
    place = stored_turns.played(title="Read the file")
    mine = str(place.conversation.public_id), str(place.turn.client_id)
    assert check([(*mine, "Read the file")])["wrong"]["lost"] == []
    for lost in (
        (*mine, "Read another file"),
        (mine[0], str(uuid4()), "Read the file"),
        (str(uuid4()), mine[1], "Read the file"),
    ):
        assert len(check([(*mine, "Read the file"), lost])["wrong"]["lost"]) == 1


def test_a_conversation_is_verified_again_when_its_chain_has_gone_on() -> None:
    place = stored_turns.played()
    found = check()
    assert not any(found["wrong"].values())
    on = " ON conversations_message" if DATABASE == "postgres" else ""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER conversations_message_keep_update{on}")
    Message.objects.filter(turn=place.turn, kind="answer").update(content="[]")
    assert check(ends=found["ends"])["wrong"]["rows"] == []
    went_on = {key: f"{end} once" for key, end in found["ends"].items()}
    for ends in (None, {}, went_on):
        assert check(ends=ends)["wrong"]["rows"], ends


def test_what_is_held_at_rest_is_found_though_no_chain_has_gone_on() -> None:
    stored_turns.played()
    ends = check()["ends"]
    BudgetWindow.objects.update(held=1)
    wrong = check(ends=ends)["wrong"]
    assert wrong["drift"]
    assert wrong["rows"]
