"""Which messages and conversations are known, and to whom."""

from __future__ import annotations

import pytest

from conversations.library.access import was_sent
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db


def test_a_message_that_was_sent_is_known_for_its_sender_alone() -> None:
    played = stored_turns.played()
    assert was_sent(played.user, played.turn.client_id)
    assert not was_sent(people_and_turns.person("bea"), played.turn.client_id)
