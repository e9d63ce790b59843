"""Links to chats: what they show, to whom, and how long."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core import mail
from django.db import IntegrityError, connection, transaction
from django.http import Http404
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations.library import shared_links
from conversations.library.access import LogInNeeded, load_shared_link
from conversations.library.conversations import (
    LibraryError,
    delete_conversation,
    restore_conversation,
)
from conversations.library.erase import erase_due_conversations
from conversations.library.shared_page import load_shared_file, read_shared_page
from conversations.models import AccountEvent, Attachment, Conversation, SharedLink, Turn, User
from conversations.reductions import manual_changes
from conversations.turns import turns
from conversations.turns.versions import show_version
from tests.library.test_erase import after
from tests.support import people_and_turns, stored_turns, version_trees
from tests.support.attached_files import NOTES, PDF, PNG, kept, started
from tests.support.reduced_conversations import now, talk
from tests.support.shared_links import shared, text_of, token_of, turns_of
from tests.transcript.test_transcript import long_conversation

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
    assert mail.outbox == []
    shared(played.conversation, "public")
    shared(played.conversation, "public", with_tools=True)
    (sent,) = mail.outbox
    assert "A link to a chat was made that needs no log-in" in sent.subject


# What it shows.


def test_what_is_said_later_is_shown_when_the_owner_renews_the_link() -> None:
    conversation = version_trees.talk("One", "Two")
    link = shared(conversation)
    people_and_turns.answered(people_and_turns.next_turn(conversation, "Three"))
    assert [turn.number for turn in turns_of(link)] == [1, 2]
    assert shared_links.has_later_turns(version_trees.fresh(conversation), link.leaf)
    shared(conversation, is_renewed=False)
    assert [turn.number for turn in turns_of(link)] == [1, 2]
    shared(conversation, is_renewed=True)
    assert [turn.number for turn in turns_of(link)] == [1, 2, 3]


def test_a_running_answer_is_not_shown_and_alone_is_nothing_to_share() -> None:
    lease = people_and_turns.started_turn()
    conversation = people_and_turns.conversation_of(lease)
    with refused("empty"):
        shared(conversation)
    people_and_turns.answered(lease)
    people_and_turns.next_turn(conversation, "SECRET of the running turn")
    link = shared(conversation)
    assert link.leaf == 1
    assert "SECRET" not in text_of(turns_of(link))


def test_it_follows_its_path_whichever_version_its_owner_looks_at() -> None:
    conversation = version_trees.talk("One", "Two")
    version_trees.edited(conversation, 2, "Another two")
    link = shared(conversation)
    assert [turn.number for turn in turns_of(link)] == [1, 3]
    show_version(turn=version_trees.turn(conversation, 2))
    assert [turn.number for turn in turns_of(link)] == [1, 3]
    shared(conversation, is_renewed=True)
    assert [turn.number for turn in turns_of(link)] == [1, 2]


def test_nothing_is_shown_but_what_was_said() -> None:
    played = stored_turns.played(title="Read the file")
    Conversation.objects.update(instructions="INSTRUCTIONS")
    link = shared(played.conversation)
    shown = text_of(turns_of(link))
    assert "Read the file" in shown
    assert "The order is 4711-ÄÖ." in shown
    for word in ("A line of the file", "read_file", "toolu_1", "INSTRUCTIONS", "compacted"):
        assert word not in shown
    with_tools = text_of(turns_of(shared(played.conversation, with_tools=True)))
    assert "A line of the file" in with_tools
    for word in ("INSTRUCTIONS", "1 old tool result compacted", "cost_micros"):
        assert word not in with_tools


def test_what_its_owner_excludes_later_vanishes_there_too() -> None:
    played = talk(stored_turns.played(), 3)
    link = shared(now(played), with_tools=True)
    assert "toolu_2" in text_of(turns_of(link))
    said = played.conversation.messages.filter(kind="prompt").order_by("seq")[1]
    assert "And then 0?" in text_of(turns_of(link))
    manual_changes.exclude_originals(
        conversation_id=played.conversation.pk,
        actor_id=played.user.pk,
        ids=["toolu_2", f"msg_{said.seq}"],
    )
    shown = text_of(turns_of(link))
    assert "toolu_2" not in shown
    assert "And then 0?" not in shown
    assert "toolu_3" in shown
    assert [turn.is_left_out for turn in turns_of(link)] == [False, True, False, False]


def test_a_page_costs_the_same_however_long_the_chat_is() -> None:
    counts = []
    for size in (3, 24):
        User.objects.filter(username="ada").update(username=f"ada of {size}")
        conversation = long_conversation(size)
        link = shared(conversation, with_tools=True)
        with CaptureQueriesContext(connection) as found:
            shown = turns_of(link)
        counts.append(len(found))
        assert len(shown) == min(size, 20)
    assert counts == [11, 11]


def test_the_pages_of_a_long_chat_follow_each_other_to_the_end_of_the_link() -> None:
    conversation = long_conversation(23)
    link = load_shared_link(token_of(shared(conversation)), is_logged_in=True)
    people_and_turns.answered(people_and_turns.next_turn(conversation))
    first = read_shared_page(link, 0, str)
    assert (len(first.turns), first.later) == (20, 20)
    second = read_shared_page(link, 20, str)
    assert ([turn.number for turn in second.turns], second.later) == ([21, 22, 23], None)
    assert read_shared_page(link, 23, str).turns == ()
    assert read_shared_page(link, 10**8, str).turns == ()


# Files.


def is_served(link: SharedLink, file: Any) -> bool:
    try:
        found = load_shared_file(
            load_shared_link(token_of(link), is_logged_in=True), file.public_id
        )
    except Http404:
        return False
    return bool(found.pk == file.pk)


def send(conversation: Conversation, file: Attachment) -> Turn:
    """Play a turn whose prompt has a file, and words enough to be excluded."""
    turn = turns.send_prompt(
        conversation=Conversation.objects.get(pk=conversation.pk),
        text="Look at this, " * 200,
        client_id=uuid4(),
        attachments=[file.public_id],
    )
    people_and_turns.answered(people_and_turns.claimed(turn))
    return turn


def test_files_are_served_if_they_are_shown() -> None:
    user = people_and_turns.person()
    cat, unsent = kept(user), kept(user, PDF, "unsent.pdf")
    turn = started(user, cat)
    people_and_turns.answered(people_and_turns.claimed(turn))
    link = shared(turn.conversation)
    later = kept(user, NOTES, "notes.txt")
    send(turn.conversation, later)
    other = kept(people_and_turns.person("eve"), PNG, "theirs.png")
    assert is_served(link, cat)
    assert not any(is_served(link, file) for file in (unsent, later, other))
    (shown,) = turns_of(link)
    assert [(file.name, file.url) for file in shown.files] == [
        ("cat.png", f"files/{cat.public_id}")
    ]
    shared(turn.conversation, is_renewed=True)
    assert is_served(link, later)
    assert turns_of(link)[1].files[0].text_url == ""
    delete_conversation(conversation=turn.conversation)
    assert not is_served(link, cat)


def test_the_file_of_an_excluded_message_is_not_served() -> None:
    played = stored_turns.played()
    cat = kept(played.user)
    turn = send(played.conversation, cat)
    people_and_turns.answered(people_and_turns.next_turn(now(played)))
    link = shared(now(played))
    assert is_served(link, cat)
    seq = turn.messages.get(kind="prompt").seq
    manual_changes.exclude_originals(
        conversation_id=played.conversation.pk, actor_id=played.user.pk, ids=[f"msg_{seq}"]
    )
    assert not is_served(link, cat)
