"""What a process caches of a turn's fold changes what is read, and nothing of what is known."""

from __future__ import annotations

from uuid import uuid4

import pytest

from conversations.log import fold_cache as module
from conversations.log.fold_cache import CachedFold, FoldCache, fold_cache
from conversations.log.loaded_path import Start, load_path_from
from conversations.log.path import read_path
from conversations.log.turn_state import build_state, load_turn_state
from conversations.models import Conversation, Message, ViewCheckpoint
from tests.log.test_loaded_path import MODEL, at_tip, fold_all, long_conversation
from tests.support import people_and_turns


def begin(conversation: Conversation, tip: int) -> CachedFold | None:
    """Begin a turn at a message, and return what is to be cached of it."""
    here = at_tip(conversation, tip)
    row = Message.objects.filter(conversation=conversation, seq=tip).first()
    here.chain = row.chain if row is not None else ""
    return load_turn_state(here, MODEL)[1]


@pytest.mark.django_db
def test_from_every_cached_fold_a_turn_begins_as_from_the_first_entry() -> None:
    conversation = long_conversation(3)
    tips = [entry.seq for entry in read_path(conversation)]
    for at, tip in enumerate(tips[::3]):
        cached = begin(conversation, tip)
        is_message = Message.objects.filter(conversation=conversation, seq=tip).exists()
        assert (cached is not None) == is_message
        for later in tips[3 * at :] if cached is not None else ():
            there = at_tip(conversation, later)
            assert cached is not None
            path = load_path_from(there, cached.start, cached.chain)
            assert path is not None
            assert path.start.seq == tip
            assert build_state(there, path, MODEL) == build_state(there, fold_all(there), MODEL)


@pytest.mark.django_db
def test_a_start_of_another_history_or_another_version_is_not_used() -> None:
    conversation = long_conversation(3)
    last = Message.objects.filter(conversation=conversation).latest("seq")
    cached = begin(conversation, last.seq)
    assert cached is not None
    assert load_path_from(conversation, cached.start, cached.chain) is not None
    assert load_path_from(conversation, cached.start, "another") is None
    Conversation.objects.filter(pk=conversation.pk).update(tip=2)
    people_and_turns.next_turn(Conversation.objects.get(pk=conversation.pk), "Another way")
    branch = Conversation.objects.get(pk=conversation.pk)
    assert load_path_from(branch, cached.start, cached.chain) is None
    lost = Start(seq=conversation.head + 1)
    assert load_path_from(branch, lost, cached.chain) is None


@pytest.mark.django_db
def test_a_turn_takes_what_was_cached_once_and_saves_a_checkpoint_as_often() -> None:
    conversation = long_conversation(3)
    prompts = Message.objects.filter(conversation=conversation, kind="prompt").order_by("-seq")
    cached = begin(conversation, prompts[1].seq)
    here = at_tip(conversation, prompts[0].seq)
    whole, _ = load_turn_state(here, MODEL)
    assert cached is not None
    fold_cache.put(here.public_id, cached)
    again, following = load_turn_state(here, MODEL)
    assert again == whole
    assert following is not None
    assert again.view.trail is following.start.view.trail is cached.start.view.trail
    assert following.unsaved == cached.unsaved + prompts[0].seq - prompts[1].seq
    assert fold_cache.take(here.public_id) is None
    assert not ViewCheckpoint.objects.exists()
    fold_cache.put(here.public_id, CachedFold(cached.start, cached.chain, 1_000))
    _, following = load_turn_state(here, MODEL)
    assert ViewCheckpoint.objects.get().seq == prompts[0].seq
    assert following is not None
    assert following.unsaved == 0


def test_the_oldest_are_dropped_when_there_are_too_many_or_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = [uuid4() for _ in range(3)]
    one = CachedFold(Start(), "chain", 0)
    monkeypatch.setattr(module, "_MOST_BYTES", 2 * one.start.view.size)
    found = FoldCache()
    for key in keys:
        found.put(key, one)
    assert [found.take(key) for key in keys] == [None, one, one]
    found.put(keys[0], one)
    monkeypatch.setattr(module, "_SECONDS", 0.0)
    assert found.take(keys[0]) is None
