"""What a person does to the context: applied as it was shown, on record, and taken back whole."""

from __future__ import annotations

import random

import pytest

from conversations.context.view import wire
from conversations.models import ApiCall, Conversation
from conversations.reductions import by_hand, proposals
from conversations.reductions.pins import keep_in_full, release
from conversations.reductions.preview import offer
from conversations.reductions.record_change import HandError
from conversations.reductions.summary import summary_card
from conversations.reductions.taken_out import left_out
from conversations.reductions.working_view import summarised
from conversations.transcript.paging import bookmark, is_known
from tests.support import people_and_turns, stored_turns
from tests.support.reduced_conversations import (
    WORDS,
    clean,
    compact,
    digest,
    now,
    refused,
    summarise,
    talk,
    view,
    who,
)
from tests.support.stored_turns import Played

pytestmark = pytest.mark.django_db


@pytest.fixture
def played() -> Played:
    return talk(stored_turns.played())


@pytest.mark.parametrize("wanted", ["results", "turns"])
def test_what_was_previewed_is_what_is_applied(played: Played, wanted: str) -> None:
    calls = ApiCall.objects.count()
    before = view(played)
    row = compact(played, wanted)
    assert (row.actor, row.setting, row.threshold) == (played.user, "by_hand", 0)
    assert row.turn is not None
    assert row.turn.number == now(played).leaf
    assert view(played).size == row.bytes_after < row.bytes_before == before.size
    assert ApiCall.objects.count() == calls
    assert clean()


def test_a_page_that_did_not_hear_of_it_is_another(played: Played) -> None:
    before = bookmark(now(played), now(played).leaf)
    assert is_known(now(played), before)
    by_hand.leave_out(**who(played), ids=["toolu_2"])
    assert not is_known(now(played), before)
    assert is_known(now(played), bookmark(now(played), now(played).leaf))


def test_what_is_not_what_was_shown_is_refused(played: Played) -> None:
    made = offer(now(played), "results").preview
    assert made is not None
    given = {**who(played), "wanted": "results"}
    assert refused(lambda: by_hand.compact(**given, digest="sha256:0")).code == "moved"
    keep_in_full(**who(played), ids=["toolu_2"])
    assert "went on" in refused(lambda: by_hand.compact(**given, digest=made.digest)).text
    release(**who(played), ids=["toolu_2"])
    Conversation.objects.filter(pk=played.conversation.pk).update(
        policy={"tool_result_retention_chars": 200}
    )
    assert refused(lambda: by_hand.compact(**given, digest=made.digest)).code == "moved"
    compact(played)
    assert "nothing" in refused(lambda: by_hand.compact(**given, digest=made.digest)).text
    assert offer(now(played), "results").problem


def test_nothing_is_done_by_hand_under_a_running_answer(played: Played) -> None:
    digest = offer(now(played), "turns").preview
    assert digest is not None
    row = by_hand.leave_out(**who(played), ids=["toolu_2"])
    people_and_turns.next_turn(now(played))
    acts = (
        lambda: by_hand.compact(**who(played), wanted="turns", digest=digest.digest),
        lambda: by_hand.leave_out(**who(played), ids=["toolu_3"]),
        lambda: by_hand.include(**who(played), ids=["toolu_2"]),
        lambda: by_hand.edit_summary(**who(played), seq=row.seq, text=WORDS),
        lambda: proposals.ask(**who(played)),
        lambda: proposals.apply(**who(played), digest="x"),
    )
    for act in acts:
        assert refused(act).code == "busy"
    assert "on its way" in offer(now(played), "results").problem


def test_what_was_left_out_stays_out_until_it_is_included(played: Played) -> None:
    before = view(played)
    said = f"msg_{[m.seq for m in before.messages if m.kind == 'prompt'][1]}"
    row = by_hand.leave_out(**who(played), ids=["toolu_2", said])
    assert (row.kind, row.setting, row.actor) == ("compaction", "exclude", played.user)
    assert left_out(now(played)) == {"toolu_2", said}
    people_and_turns.answered(people_and_turns.next_turn(now(played)))
    assert 'recall \\"toolu_2\\"' in view(played).body
    again = lambda: by_hand.leave_out(**who(played), ids=["toolu_2"])  # noqa: E731
    assert refused(again).code == "nothing"
    back = by_hand.include(**who(played), ids=["toolu_2"])
    assert back is not None
    assert back.kind == "restore"
    assert left_out(now(played)) == {said}
    assert by_hand.include(**who(played), ids=["toolu_2"]) is None
    by_hand.take_back(**who(played), seq=back.seq)
    assert left_out(now(played)) == {"toolu_2", said}
    by_hand.include(**who(played), ids=["toolu_2", said])
    assert left_out(now(played)) == frozenset()
    assert view(played).body.startswith(before.body[:400])
    assert clean()


def test_what_is_pinned_or_unknown_or_first_is_not_left_out(played: Played) -> None:
    keep_in_full(**who(played), ids=["toolu_2"])
    results = next(
        m.seq for m in view(played).messages if "toolu_2" in {r.id for r in m.shape.results}
    )
    for ids, code in (
        (["toolu_2"], "pinned"), ([f"msg_{results}"], "pinned"), (["toolu_99"], "unknown"),
        ([], "unknown"), (["msg_1"], "nothing"),
    ):  # fmt: skip
        assert refused(lambda ids=ids: by_hand.leave_out(**who(played), ids=ids)).code == code
    keep_in_full(**who(played), ids=[f"msg_{results}"])
    release(**who(played), ids=["toolu_2"])
    assert refused(lambda: by_hand.leave_out(**who(played), ids=["toolu_2"])).code == "pinned"


@pytest.mark.parametrize("seed", range(6))
def test_taking_back_gives_the_earlier_view_to_the_byte(seed: int) -> None:
    played = talk(stored_turns.played(), 5, seed)
    chance = random.Random(seed)
    acts = [
        lambda: compact(played),
        lambda: compact(played, "turns"),
        lambda: by_hand.leave_out(**who(played), ids=[f"msg_{now(played).tip}"]),
        lambda: keep_in_full(**who(played), ids=["toolu_1"]),
        lambda: summarise(played),
        lambda: by_hand.edit_summary(
            **who(played), seq=current(played), text=WORDS + f"More {seed}."
        ),
    ]
    chance.shuffle(acts)
    done = 0
    for act in acts:
        before = view(played)
        try:
            row = act()
        except (HandError, AssertionError):
            continue
        if row is None:
            continue
        undone = by_hand.take_back(**who(played), seq=row.seq)
        assert (undone.edits, undone.parent, undone.actor) == ("[]", row.parent, played.user)
        after = view(played)
        assert wire.digest(after.body) == wire.digest(before.body)
        assert [m.by for m in after.messages] == [m.by for m in before.messages]
        done += 1
        if chance.random() < 0.5:
            act()
            people_and_turns.answered(people_and_turns.next_turn(now(played), "Go on. " * 30))
    assert done > 2
    assert clean()


def current(played: Played) -> int:
    found = summarised(now(played))
    return found.current if found is not None else 0


def test_only_the_last_change_by_hand_is_taken_back_and_the_text_says_what_can_be_done(
    played: Played,
) -> None:
    row = compact(played)
    people_and_turns.answered(people_and_turns.next_turn(now(played)))
    error = refused(lambda: by_hand.take_back(**who(played), seq=row.seq))
    assert "went on" in error.text
    assert "sent in full again" in error.text
    automatic = played.conversation.transformations.filter(actor=None).first()
    assert automatic is not None
    assert refused(lambda: by_hand.take_back(**who(played), seq=automatic.seq)).code == "moved"


def test_a_person_rewords_a_summary_and_takes_it_back(played: Played) -> None:
    first = summarise(played)
    before = digest(played)
    longer = WORDS * 2 + "\n## Open\n- the rate"
    row = by_hand.edit_summary(**who(played), seq=first.seq, text=longer)
    assert row is not None
    assert (row.kind, row.setting, row.actor) == ("summary", "edit", played.user)
    assert row.bytes_after > row.bytes_before
    assert wire.encode(longer)[1:-1] in view(played).body
    assert by_hand.edit_summary(**who(played), seq=row.seq, text=longer) is None
    old = lambda: by_hand.edit_summary(**who(played), seq=first.seq, text=WORDS)  # noqa: E731
    assert refused(old).code == "replaced"
    bad = lambda: by_hand.edit_summary(**who(played), seq=row.seq, text=" ")  # noqa: E731
    assert "empty" in refused(bad).text
    grown = lambda: by_hand.edit_summary(  # noqa: E731
        **who(played), seq=row.seq, text=WORDS * 500
    )
    assert "shorter" in refused(grown).text
    card = summary_card(now(played), row)
    assert card is not None
    assert [one.origin for one in card.versions] == ["by_hand", "edit"]
    assert [part.title for part in card.sections] == ["", "Open"]
    assert (card.can_edit, card.newest, card.count > 3) == (True, None, True)
    earlier = summary_card(now(played), first)
    assert earlier is not None
    assert (earlier.can_edit, earlier.newest) == (False, row.seq)
    assert (earlier.model, earlier.accepted, earlier.written_tokens) == (stored_turns.MODEL, 1, 60)
    by_hand.take_back(**who(played), seq=row.seq)
    assert digest(played) == before
    assert clean()
