"""What a link shows of a chat: one path, what was said on it, and the files of its prompts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.http import Http404
from django.template.loader import render_to_string
from django.test.utils import CaptureQueriesContext

from conversations.library import shared_links, shared_page
from conversations.library.access import load_shared_link
from conversations.library.conversations import (
    LibraryError,
    delete_conversation,
)
from conversations.library.shared_page import (
    SharedRound,
    SharedTurn,
    load_shared_file,
    read_shared_page,
)
from conversations.models import Attachment, Conversation, SharedLink, Turn, User
from conversations.reductions import manual_changes
from conversations.transcript.shapes import Fallback, Round, Source
from conversations.turns import turns
from conversations.turns.versions import regenerate_answer, show_version
from tests.support import people_and_turns, stored_turns, version_trees
from tests.support.attached_files import NOTES, PDF, PNG, kept, started
from tests.support.reduced_conversations import now, talk
from tests.support.shared_links import shared, text_of, token_of, turns_of
from tests.transcript.test_transcript import long_conversation
from tests.web import samples

pytestmark = pytest.mark.django_db


def refused(code: str) -> Any:
    return pytest.raises(LibraryError, check=lambda error: error.code == code)


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


@pytest.mark.parametrize("number", [1, 2])
def test_nothing_is_later_while_an_answer_is_written_again(number: int) -> None:
    conversation = version_trees.talk("One", "Two")
    link = shared(conversation)
    again = regenerate_answer(turn=version_trees.turn(conversation, number))
    assert not shared_links.has_later_turns(version_trees.fresh(conversation), link.leaf)
    assert shared(conversation, is_renewed=True).leaf == 2
    version_trees.answered(again)
    assert shared_links.has_later_turns(version_trees.fresh(conversation), link.leaf)
    assert shared(conversation, is_renewed=True).leaf == 3


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


def test_what_its_owner_excludes_on_another_way_vanishes_too() -> None:
    conversation = version_trees.talk("One", "SECRET " * 300, "Three")
    link = shared(conversation)
    version_trees.edited(conversation, 3, "Another three")
    prompt = version_trees.turn(conversation, 2).messages.get(kind="prompt")
    manual_changes.exclude_originals(
        conversation_id=conversation.pk, actor_id=conversation.owner_id, ids=[f"msg_{prompt.seq}"]
    )
    assert [turn.number for turn in turns_of(link)] == [1, 2, 3]
    assert [turn.is_left_out for turn in turns_of(link)] == [False, True, False]
    assert "SECRET" not in text_of(turns_of(link))


def share(row: Round, *out: str, with_tools: bool = True) -> SharedRound:
    return shared_page._share_round(row, frozenset(out), with_tools=with_tools)


def test_what_is_left_out_is_not_repeated_by_a_quote_or_a_recall() -> None:
    card = replace(samples.tool(), name="recall")
    source = Source(1, "Notes", "", "", "QUOTED")
    row = Round(1, html="SAID", tools=(card,), sources=(source,))
    assert share(row).sources == (source,)
    assert share(row).tools == (card,)
    for shown in (share(row, "msg_1"), share(row, with_tools=False)):
        assert shown.html == "SAID"
        assert shown.sources == (replace(source, quote=""),)
        assert shown.tools == ()


def test_it_says_whether_the_model_answered_that_was_asked_instead() -> None:
    row = Round(1, html="SAID", fallback=Fallback("Sonnet", "Opus"))
    for number, words in ((3, "Answered by Sonnet, because"), (None, "Sonnet was asked, because")):
        for with_tools in (True, False):
            shown = share(replace(row, seq=number), with_tools=with_tools)
            turn = SharedTurn(1, "", (), (shown,), False, "")
            page = render_to_string("conversations/_partials/shared_turn.html", {"turn": turn})
            assert words in " ".join(page.split())


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
