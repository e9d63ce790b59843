"""Temporary chats: in no list and no search, gone after their time; only the cost is left."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from conversations.audit.verify import Tally, verify_everything
from conversations.library.access import find_newest
from conversations.library.conversations import delete_conversation
from conversations.library.erase import erase_due_conversations
from conversations.library.search import search_messages
from conversations.library.sidebar import count_conversations, list_trash, read_sidebar
from conversations.log.legal_holds import place_hold
from conversations.models import BudgetWindow, Conversation, Erasure
from conversations.turns import turns
from conversations.turns.forks import fork_conversation
from tests.library.test_erase import KEPT, after, rows
from tests.support import people_and_turns, stored_turns
from tests.web.pages import client_of, html_of

pytestmark = pytest.mark.django_db


def temporary(hours: float = 1) -> stored_turns.Played:
    played = stored_turns.played()
    at = timezone.now() + timedelta(hours=hours)
    Conversation.objects.filter(pk=played.conversation.pk).update(erase_at=at)
    played.conversation.refresh_from_db()
    return played


def test_it_is_in_no_list_and_found_by_no_search() -> None:
    played = temporary()
    assert played.conversation.is_temporary
    assert not read_sidebar(played.user).groups
    assert not list_trash(played.user)
    assert find_newest(played.user) is None
    assert not search_messages(played.user, "4711").rows
    assert count_conversations(played.user).listed == 0
    assert "4711" in html_of(client_of(played.user), f"/c/{played.conversation.public_id}/")


def test_it_is_erased_when_its_time_is_over_and_only_the_ledger_stays() -> None:
    played = temporary()
    spent = list(BudgetWindow.objects.values_list("spent", flat=True))
    assert erase_due_conversations(now=after(0.9 / 24)) == 0
    assert erase_due_conversations(now=after(1.1 / 24)) == 1
    assert set(rows()) <= KEPT
    assert list(BudgetWindow.objects.values_list("spent", flat=True)) == spent
    assert Erasure.objects.get().conversation == played.conversation.public_id
    assert list(verify_everything(Tally())) == []


def test_its_owner_erases_it_at_once_without_the_days_of_the_trash() -> None:
    played = temporary()
    client = client_of(played.user)
    path = f"/c/{played.conversation.public_id}/"
    assert "Erase now" in html_of(client, path)
    client.post(f"{path}menu/delete/")
    assert set(rows()) - {"Session", "SessionRecord", "PersonSession"} <= KEPT


@pytest.mark.parametrize("days", [30, 0])
def test_what_is_erased_while_it_answers_is_in_no_list_and_stays_due(
    days: int, settings: Any
) -> None:
    settings.AGENTWEB_TRASH_DAYS = days
    played = temporary() if days else stored_turns.played()
    lease = people_and_turns.next_turn(played.conversation)
    client, key = client_of(played.user), played.conversation.public_id
    client.post(f"/c/{key}/menu/delete/")
    page = html_of(client, "/trash/")
    assert "will be erased as soon as its answer has stopped" in page
    assert "Nothing is in the trash." in page
    assert count_conversations(played.user).trash == 0
    assert client.post(f"/trash/{key}/back/").status_code == 404
    client.post("/trash/empty/")
    assert "What is still answering follows" in html_of(client, "/trash/")
    turns.finish_turn(lease=lease, finish=people_and_turns.Finish("cancelled", "stopped"))
    assert erase_due_conversations() == 1


def test_a_hold_keeps_it() -> None:
    played = temporary(hours=-1)
    place_hold(actor_id=played.user.pk, reason="case 7", public_id=played.conversation.public_id)
    assert erase_due_conversations() == 0
    played.conversation.refresh_from_db()
    assert played.conversation.is_temporary


def test_an_answer_is_waited_for() -> None:
    played = temporary(hours=-1)
    lease = people_and_turns.next_turn(played.conversation)
    assert erase_due_conversations() == 0
    stopped = delete_conversation(conversation=played.conversation)
    assert stopped is not None
    assert stopped.pk == lease.turn_id
    played.conversation.refresh_from_db()
    assert played.conversation.erase_at is not None
    assert played.conversation.erase_at <= timezone.now()


def test_a_fork_of_it_goes_at_the_same_time() -> None:
    played = temporary()
    turn = played.conversation.turns.get()
    assert fork_conversation(turn=turn).erase_at == played.conversation.erase_at


@pytest.mark.parametrize("hours", [24, 0])
def test_it_is_started_from_its_own_page_where_the_site_allows_it(
    hours: int, settings: Any
) -> None:
    settings.AGENTWEB_TEMPORARY_HOURS = hours
    user = people_and_turns.person()
    html = html_of(client_of(user), "/c/new/?temporary=1")
    assert ('name="is_temporary"' in html) is (hours > 0)
    model = stored_turns.played("bob").conversation.model
    turn = turns.start_conversation(
        owner_id=user.pk, model=model, text="hello", client_id=uuid4(), is_temporary=True
    )
    assert turn.conversation.is_temporary is (hours > 0)
