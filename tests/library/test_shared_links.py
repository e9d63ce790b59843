"""Links to chats: how they are made, whom they let in, and how long."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.http import Http404
from django.utils import timezone

from conversations.library import shared_links
from conversations.library.access import LogInNeeded, load_shared_link
from conversations.library.conversations import (
    LibraryError,
    delete_conversation,
    restore_conversation,
)
from conversations.library.erase import erase_due_conversations
from conversations.models import AccountEvent, Conversation, SharedLink, User
from tests.attacks.test_guessing import wait_for_mails
from tests.library.test_erase import after
from tests.support import people_and_turns, stored_turns
from tests.support.shared_links import shared, token_of

pytestmark = pytest.mark.django_db


def refused(code: str) -> Any:
    return pytest.raises(LibraryError, check=lambda error: error.code == code)


def is_closed(link: SharedLink) -> bool:
    try:
        load_shared_link(token_of(link), is_logged_in=True)
    except Http404:
        return True
    return False


# The link.


def test_the_token_is_long_and_stored_nowhere() -> None:
    link = shared(stored_turns.played().conversation)
    token = token_of(link)
    assert len(token) * 6 >= 128
    assert load_shared_link(token, is_logged_in=True) == link
    assert token not in str(people_and_turns.everything())
    other = shared(stored_turns.played().conversation)
    assert token_of(other) != token


def test_the_link_is_shown_again_until_the_key_that_made_it_is_gone(settings: Any) -> None:
    conversation = stored_turns.played().conversation
    link = shared(conversation)
    token, before = token_of(link), settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another key", [before]
    own = shared_links.find_link(conversation)
    assert own is not None
    assert own.token == token
    settings.SECRET_KEY_FALLBACKS = []
    own = shared_links.find_link(conversation)
    assert own is not None
    assert own.token == ""
    assert load_shared_link(token, is_logged_in=True) == link


def test_a_chat_has_one_link_that_is_changed_in_place() -> None:
    conversation = stored_turns.played().conversation
    link = shared(conversation)
    end = timezone.now() + timedelta(days=1)
    again = shared(conversation, with_tools=True, expires_at=end)
    assert (again.pk, again.with_tools, again.expires_at) == (link.pk, True, end)
    row = SharedLink(conversation=conversation, leaf=1, digest="x", audience="people")
    with pytest.raises(IntegrityError), transaction.atomic():
        row.save()


def test_what_was_known_before_its_time_was_over_never_works_again() -> None:
    conversation = stored_turns.played().conversation
    link = shared(conversation, expires_at=timezone.now() - timedelta(seconds=1))
    assert is_closed(link)
    assert shared_links.find_link(conversation) is None
    new = shared(conversation)
    assert token_of(new) != token_of(link)
    assert is_closed(link)
    assert not is_closed(new)


@pytest.mark.django_db(transaction=True)
def test_of_several_that_make_a_link_at_once_all_get_the_same() -> None:
    conversation = stored_turns.played().conversation
    found = people_and_turns.crowd(6, lambda at: shared(conversation).pk)
    assert not people_and_turns.failures(found)
    assert len(set(found)) == 1
    assert SharedLink.objects.count() == 1


def test_a_link_that_is_revoked_while_it_is_changed_stays_revoked(monkeypatch: Any) -> None:
    played = stored_turns.played()
    shared(played.conversation)
    find = shared_links._find_last_turn

    def revoke_meanwhile(row: Conversation) -> int:
        shared_links.revoke_links(owner=played.user, peer="")
        return find(row)

    link = SharedLink.objects.get()
    shared_links.record_opening(link)
    with monkeypatch.context() as patched:
        patched.setattr(shared_links, "_find_last_turn", revoke_meanwhile)
        patched.setattr(shared_links, "_demand_shareable", lambda row, terms: None)
        shared(played.conversation, with_tools=True, is_renewed=True)
    row = SharedLink.objects.get()
    assert row.revoked_at is not None
    assert is_closed(link)


# Who may open it.


def test_strangers_get_in_only_by_a_link_for_them_on_a_site_that_has_such(settings: Any) -> None:
    conversation = stored_turns.played().conversation
    settings.AGENTWEB_SHARING = "public"
    link = shared(conversation, "public")
    assert load_shared_link(token_of(link), is_logged_in=False) == link
    shared(conversation, "people")
    with pytest.raises(LogInNeeded):
        load_shared_link(token_of(link), is_logged_in=False)
    shared(conversation, "public")
    settings.AGENTWEB_SHARING = "people"
    for token in (token_of(link), "unknown"):
        with pytest.raises(LogInNeeded):
            load_shared_link(token, is_logged_in=False)
    own = shared_links.find_link(conversation)
    assert own is not None
    assert own.audience == "people"
    with refused("off"):
        shared(conversation, "public")


@pytest.mark.parametrize("word", ["off", "nonsense", ""])
def test_where_links_are_off_none_is_made_and_none_works(word: str, settings: Any) -> None:
    conversation = stored_turns.played().conversation
    link = shared(conversation)
    settings.AGENTWEB_SHARING = word
    assert is_closed(link)
    assert not shared_links.is_shared(conversation)
    with refused("off"):
        shared(conversation)


@pytest.mark.parametrize("token", ["", "unknown", "x" * 5_000, "\x00", "\ud7ff💥", "' OR 1=1 --"])
def test_what_is_no_token_opens_nothing(token: str) -> None:
    shared(stored_turns.played().conversation)
    with pytest.raises(Http404):
        load_shared_link(token, is_logged_in=True)


# Its end.


def test_the_trash_closes_it_and_bringing_the_chat_back_opens_it() -> None:
    conversation = stored_turns.played().conversation
    link = shared(conversation)
    delete_conversation(conversation=conversation)
    assert is_closed(link)
    assert shared_links.list_own_links(conversation.owner) == []
    with refused("deleted"):
        shared(conversation)
    restore_conversation(conversation=conversation)
    assert not is_closed(link)


def test_erasing_the_chat_erases_its_links() -> None:
    conversation = stored_turns.played().conversation
    link = shared(conversation)
    delete_conversation(conversation=conversation)
    assert erase_due_conversations(now=after(31)) == 1
    assert is_closed(link)
    assert not SharedLink.objects.exists()


def test_it_ends_with_the_account_of_who_made_it() -> None:
    played = stored_turns.played()
    link = shared(played.conversation)
    User.objects.filter(pk=played.user.pk).update(is_active=False)
    assert is_closed(link)


def test_a_temporary_chat_has_no_link_and_one_that_becomes_temporary_closes_it() -> None:
    conversation = stored_turns.played().conversation
    link = shared(conversation)
    Conversation.objects.update(erase_at=timezone.now() + timedelta(hours=1))
    assert is_closed(link)
    with refused("temporary"):
        shared(conversation)


def test_who_revokes_is_recorded_and_the_owner_sees_what_staff_did() -> None:
    played = stored_turns.played()
    link, staff = shared(played.conversation), people_and_turns.person("root", is_staff=True)
    revoke = lambda actor: shared_links.revoke_link(  # noqa: E731
        conversation=played.conversation, actor=actor, peer="192.0.2.9"
    )
    assert revoke(staff)
    assert is_closed(link)
    assert not revoke(staff)
    assert SharedLink.objects.get().revoked_by == staff
    shared(played.conversation)
    assert revoke(played.user)
    kinds = AccountEvent.objects.filter(user=played.user).order_by("pk")
    assert list(kinds.values_list("kind", "peer")) == [
        ("link_made", "192.0.2.1"),
        ("link_stopped", ""),
        ("link_made", "192.0.2.1"),
        ("link_revoked", "192.0.2.9"),
    ]


def test_all_links_of_a_person_are_revoked_and_no_others() -> None:
    mine, theirs = stored_turns.played(), stored_turns.played("eve")
    trashed = stored_turns.played().conversation
    links = [shared(mine.conversation), shared(trashed)]
    other = shared(theirs.conversation)
    delete_conversation(conversation=trashed)
    assert shared_links.revoke_links(owner=mine.user, peer="") == 2
    restore_conversation(conversation=trashed)
    assert all(map(is_closed, links))
    assert not is_closed(other)


@pytest.mark.django_db(transaction=True)
def test_mail_tells_of_a_link_that_needs_no_log_in_and_of_no_other(settings: Any) -> None:
    settings.AGENTWEB_SHARING = "public"
    played = stored_turns.played()
    User.objects.filter(pk=played.user.pk).update(email="ada@example.org")
    shared(played.conversation)
    assert wait_for_mails() == []
    shared(played.conversation, "public")
    shared(played.conversation, "public", with_tools=True)
    (sent,) = wait_for_mails()
    assert "A link to a chat was made that needs no log-in" in sent.subject
