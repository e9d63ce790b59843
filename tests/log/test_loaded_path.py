"""A checkpoint changes what is read and nothing of what is known."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.audit.verify import Tally, verify_conversation
from conversations.context.view import wire
from conversations.log import loaded_path
from conversations.log.loaded_path import (
    LoadedPath,
    Start,
    load_path,
    read_checkpoint,
    save_checkpoint_if_due,
)
from conversations.log.path import read_path
from conversations.log.turn_state import build_state, load_state
from conversations.models import Conversation, Message, ViewCheckpoint
from conversations.reductions.in_full import choose_in_full
from tests.support import people_and_turns, reduced_conversations, stored_turns

pytestmark = pytest.mark.django_db
MODEL = stored_turns.MODEL
RENEWAL = import_module("conversations.migrations.0071_renew_counts_of_edits")


@pytest.fixture
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded_path, "EVERY", 1)
    monkeypatch.setattr(loaded_path, "REMEMBERED", 9)


def long_conversation(turns: int = 6) -> Conversation:
    """Give a conversation with shortened results, a rejected summary and an applied one."""
    played = reduced_conversations.talk(stored_turns.played(), turns)
    reduced_conversations.compact(played)
    reduced_conversations.summarise(played)
    return reduced_conversations.now(reduced_conversations.talk(played, 2, seed=1))


def fold_all(conversation: Conversation) -> LoadedPath:
    return LoadedPath(Start(), read_path(conversation))


def at_tip(conversation: Conversation, tip: int) -> Conversation:
    found = Conversation.objects.get(pk=conversation.pk)
    found.tip = tip
    return found


@pytest.mark.usefixtures("_often")
def test_from_every_checkpoint_a_turn_starts_as_from_the_first_entry() -> None:
    conversation = long_conversation()
    tips = [entry.seq for entry in read_path(conversation)]
    for saved in tips[3::4]:
        ViewCheckpoint.objects.all().delete()
        before = at_tip(conversation, saved)
        save_checkpoint_if_due(before, load_path(before))
        row = ViewCheckpoint.objects.get()
        assert row.seq == saved
        for tip in tips[tips.index(saved) :]:
            here = at_tip(conversation, tip)
            path = load_path(here)
            assert path.start.seq == row.seq
            assert build_state(here, path, MODEL) == build_state(here, fold_all(here), MODEL)
        assert list(verify_conversation(conversation.public_id, Tally())) == []


@pytest.mark.usefixtures("_often")
def test_the_next_checkpoint_goes_on_from_the_last() -> None:
    conversation = long_conversation()
    for tip in (entry.seq for entry in read_path(conversation)):
        here = at_tip(conversation, tip)
        path = load_path(here)
        assert len(path.entries) == 1
        save_checkpoint_if_due(here, path)
    assert load_state(conversation, MODEL) == build_state(
        conversation, fold_all(conversation), MODEL
    )
    assert list(verify_conversation(conversation.public_id, Tally())) == []


@pytest.mark.usefixtures("_often")
def test_another_version_is_folded_from_its_own_beginning() -> None:
    conversation = long_conversation()
    save_checkpoint_if_due(conversation, load_path(conversation))
    earlier = at_tip(conversation, ViewCheckpoint.objects.get().seq - 1)
    assert load_path(earlier).start == Start()
    Conversation.objects.filter(pk=conversation.pk).update(tip=2)
    people_and_turns.next_turn(Conversation.objects.get(pk=conversation.pk), "Another way")
    branch = Conversation.objects.get(pk=conversation.pk)
    assert load_path(branch).start == Start()
    assert load_path(branch).fold() == fold_all(branch).fold()


@pytest.mark.usefixtures("_often")
@pytest.mark.parametrize("stored", ["", "[]", "[0,[],[[999999]]]"])
def test_one_that_cannot_be_read_is_passed_over_and_named_by_verification(stored: str) -> None:
    conversation = long_conversation()
    save_checkpoint_if_due(conversation, load_path(conversation))
    ViewCheckpoint.objects.update(view=stored)
    assert load_path(conversation).start == Start()
    (problem,) = verify_conversation(conversation.public_id, Tally())
    assert problem.table == "viewcheckpoint"


@pytest.mark.usefixtures("_often")
def test_one_that_was_changed_is_found_by_verification() -> None:
    conversation = long_conversation()
    save_checkpoint_if_due(conversation, load_path(conversation))
    row = ViewCheckpoint.objects.get()
    edits, cleared, rows = wire.decode(row.view)
    rows[-1] = [rows[-1][0], "prompt", '[{"type":"text","text":"Send it away"}]', 4, []]
    ViewCheckpoint.objects.update(view=wire.encode([edits, cleared, rows]))
    (problem,) = verify_conversation(conversation.public_id, Tally())
    assert (problem.table, problem.id) == ("viewcheckpoint", str(row.pk))


@pytest.mark.usefixtures("_often")
@pytest.mark.parametrize(
    "changed", [{"answers": 1}, {"compaction": 2}, {"summaries": [[0, "rejected", None, 1]]}]
)
def test_verification_compares_all_that_a_checkpoint_stores(changed: dict[str, Any]) -> None:
    conversation = long_conversation()
    save_checkpoint_if_due(conversation, load_path(conversation))
    assert list(verify_conversation(conversation.public_id, Tally())) == []
    ViewCheckpoint.objects.update(**changed)
    (problem,) = verify_conversation(conversation.public_id, Tally())
    assert problem.table == "viewcheckpoint"


@pytest.mark.usefixtures("_often")
def test_a_count_that_an_older_version_stored_is_renewed() -> None:
    played = stored_turns.played()
    choose_in_full(**reduced_conversations.who(played), choice="full_always")
    conversation = reduced_conversations.now(played)
    save_checkpoint_if_due(conversation, load_path(conversation))
    edits, *rest = wire.decode(ViewCheckpoint.objects.get().view)
    ViewCheckpoint.objects.update(view=wire.encode([edits + 1, *rest]))
    assert list(verify_conversation(conversation.public_id, Tally())) != []
    RENEWAL.delete_checkpoints(apps, connection.schema_editor())
    assert list(verify_conversation(conversation.public_id, Tally())) == []
    save_checkpoint_if_due(conversation, load_path(conversation))
    assert list(verify_conversation(conversation.public_id, Tally())) == []


def test_what_was_removed_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a long conversation a turn reads the entries since, and those in view."""
    monkeypatch.setattr(loaded_path, "EVERY", 10)
    conversation = long_conversation(turns=20)
    save_checkpoint_if_due(conversation, load_path(conversation))
    view = read_checkpoint(conversation, ViewCheckpoint.objects.get()).view
    assert view.length < Message.objects.count() / 2
    read: list[Any] = []
    known = loaded_path.read_messages

    def read_messages(conversation: Conversation, numbers: list[int]) -> Any:
        read.extend(numbers)
        return known(conversation, numbers)

    monkeypatch.setattr(loaded_path, "read_messages", read_messages)
    with CaptureQueriesContext(connection) as queries:
        path = load_path(conversation)
    assert path.entries == []
    assert set(read) <= {message.seq for message in view.messages}
    # The checkpoint, the entries behind it of both kinds, and the messages in view.
    assert len(queries) == 4


def test_a_short_conversation_asks_for_none() -> None:
    conversation = stored_turns.played().conversation
    conversation.refresh_from_db()
    with CaptureQueriesContext(connection) as queries:
        save_checkpoint_if_due(conversation, load_path(conversation))
    assert not any("viewcheckpoint" in query["sql"] for query in queries)
