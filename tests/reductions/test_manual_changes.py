"""What a person does to the context: applied as it was shown, on record, and taken back whole."""

from __future__ import annotations

import json
import random
from datetime import timedelta

import pytest
from django.utils import timezone

from conversations.agent.ports import Finish
from conversations.agent.usage import read_usage
from conversations.context.view import wire
from conversations.context.view.edits import SpliceBlocks, load_edits
from conversations.log.leases import Lease
from conversations.log.turn_state import load_state
from conversations.models import ApiCall, Conversation
from conversations.reductions import manual_changes, proposals
from conversations.reductions.in_full import choose_in_full
from conversations.reductions.pins import pin_originals, unpin_originals
from conversations.reductions.preview import build_offer
from conversations.reductions.record_change import ManualChangeError
from conversations.reductions.removed_originals import list_excluded
from conversations.reductions.summary import build_summary_card
from conversations.reductions.working_view import find_summary
from conversations.transcript.meter import read_meter
from conversations.transcript.paging import is_same_history, read_bookmark
from conversations.turns import turns
from tests.support import people_and_turns, stored_turns
from tests.support.reduced_conversations import (
    WORDS,
    clean,
    compact,
    digest,
    import_talk,
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
    before = read_bookmark(now(played), now(played).leaf)
    assert is_same_history(now(played), before)
    manual_changes.exclude_originals(**who(played), ids=["toolu_2"])
    assert not is_same_history(now(played), before)
    assert is_same_history(now(played), read_bookmark(now(played), now(played).leaf))


def test_what_is_not_what_was_shown_is_refused(played: Played) -> None:
    made = build_offer(now(played), "results").preview
    assert made is not None
    given = {**who(played), "wanted": "results"}
    assert refused(lambda: manual_changes.compact_now(**given, digest="sha256:0")).code == "moved"
    pin_originals(**who(played), ids=["toolu_2"])
    assert (
        "went on" in refused(lambda: manual_changes.compact_now(**given, digest=made.digest)).text
    )
    unpin_originals(**who(played), ids=["toolu_2"])
    Conversation.objects.filter(pk=played.conversation.pk).update(
        policy={"tool_result_retention_chars": 200}
    )
    assert refused(lambda: manual_changes.compact_now(**given, digest=made.digest)).code == "moved"
    compact(played)
    assert (
        "nothing" in refused(lambda: manual_changes.compact_now(**given, digest=made.digest)).text
    )
    assert build_offer(now(played), "results").problem


def pay_for_an_hour(played: Played) -> Lease:
    """Play a turn whose request of 3,910 tokens is kept for an hour."""
    usage = read_usage(
        {
            "input_tokens": 10,
            "output_tokens": 20,
            "cache_read_input_tokens": 3_000,
            "cache_creation_input_tokens": 900,
            "cache_creation": {"ephemeral_1h_input_tokens": 900},
        }
    )
    lease = people_and_turns.next_turn(now(played))
    call = people_and_turns.opened(lease, stored_turns.ENVELOPE.with_lifetime("1h")).call
    stored_turns.close(lease, call, people_and_turns.complete(usage=usage))
    turns.finish_turn(lease=lease, finish=Finish("done", "end_turn"))
    return lease


def test_the_preview_knows_what_is_kept_for_an_hour(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = timezone.now()
    with monkeypatch.context() as patch:
        patch.setattr(timezone, "now", lambda: start - timedelta(minutes=10))
        pay_for_an_hour(played)
    made = build_offer(now(played), "results").preview
    assert made is not None
    assert "cached tokens are written anew" in dict(made.costs)["Prompt cache"]
    assert json.loads(compact(played).decision)["cost"] > 0


def test_what_the_next_request_repairs_anyway_is_no_hindrance() -> None:
    conversation = import_talk({"role": "assistant", "content": "Hello, how can I help?"})
    who = {"conversation_id": conversation.pk, "actor_id": conversation.owner_id}
    for wanted in ("results", "turns", "summary"):
        assert build_offer(conversation, wanted).wanted == wanted
    made = build_offer(conversation, "results").preview
    assert made is not None
    row = manual_changes.compact_now(**who, wanted="results", digest=made.digest)
    manual_changes.exclude_originals(**who, ids=["toolu_1"])
    assert pin_originals(**who, ids=["toolu_0"]) is not None
    assert row.tokens_after < row.tokens_before
    assert clean()


def test_what_was_changed_first_is_known_until_the_next_call(played: Played) -> None:
    def find_edited() -> int | None:
        return load_state(now(played), stored_turns.MODEL).edited_from

    assert find_edited() is None
    late = manual_changes.exclude_originals(**who(played), ids=["toolu_3"])
    (edit,) = load_edits(late.edits)
    assert isinstance(edit, SpliceBlocks)
    assert find_edited() == edit.seq
    early = manual_changes.exclude_originals(**who(played), ids=["toolu_2"])
    first = find_edited()
    assert first is not None
    assert first < edit.seq
    manual_changes.undo_change(**who(played), seq=early.seq)
    assert find_edited() == edit.seq
    people_and_turns.answered(people_and_turns.next_turn(now(played)))
    assert find_edited() is None


def test_what_changes_no_byte_leaves_the_last_request_in_the_cache(played: Played) -> None:
    lease = pay_for_an_hour(played)
    known, reported = stored_turns.loaded(lease), read_meter(now(played))
    row = compact(played)
    assert stored_turns.loaded(lease).view.edits == known.view.edits + 1
    manual_changes.undo_change(**who(played), seq=row.seq)
    choose_in_full(**who(played), choice="full_always")
    choose_in_full(**who(played), choice="full_never")
    after = stored_turns.loaded(lease)
    assert (after.view, after.report, after.cached) == (known.view, known.report, known.cached)
    assert read_meter(now(played)).source == reported.source == "reported"
    # The next call continues the last one, so the hour still counts after it.
    people_and_turns.answered(people_and_turns.next_turn(now(played)))
    assert stored_turns.loaded(lease).cached.tokens == known.cached.tokens == 3_910
    assert clean()


def test_nothing_is_done_by_hand_under_a_running_answer(played: Played) -> None:
    digest = build_offer(now(played), "turns").preview
    assert digest is not None
    row = manual_changes.exclude_originals(**who(played), ids=["toolu_2"])
    people_and_turns.next_turn(now(played))
    acts = (
        lambda: manual_changes.compact_now(**who(played), wanted="turns", digest=digest.digest),
        lambda: manual_changes.exclude_originals(**who(played), ids=["toolu_3"]),
        lambda: manual_changes.include_originals(**who(played), ids=["toolu_2"]),
        lambda: manual_changes.edit_summary(**who(played), seq=row.seq, text=WORDS),
        lambda: proposals.request_summary(**who(played)),
        lambda: proposals.apply_proposal(**who(played), digest="x"),
    )
    for act in acts:
        assert refused(act).code == "busy"
    assert "on its way" in build_offer(now(played), "results").problem


def test_what_was_left_out_stays_out_until_it_is_included(played: Played) -> None:
    before = view(played)
    said = f"msg_{[m.seq for m in before.messages if m.kind == 'prompt'][1]}"
    row = manual_changes.exclude_originals(**who(played), ids=["toolu_2", said])
    assert (row.kind, row.setting, row.actor) == ("compaction", "exclude", played.user)
    assert list_excluded(now(played)) == {"toolu_2", said}
    people_and_turns.answered(people_and_turns.next_turn(now(played)))
    assert 'recall \\"toolu_2\\"' in view(played).body
    again = lambda: manual_changes.exclude_originals(**who(played), ids=["toolu_2"])  # noqa: E731
    assert refused(again).code == "nothing"
    back = manual_changes.include_originals(**who(played), ids=["toolu_2"])
    assert back is not None
    assert back.kind == "restore"
    assert list_excluded(now(played)) == {said}
    assert manual_changes.include_originals(**who(played), ids=["toolu_2"]) is None
    manual_changes.undo_change(**who(played), seq=back.seq)
    assert list_excluded(now(played)) == {"toolu_2", said}
    manual_changes.include_originals(**who(played), ids=["toolu_2", said])
    assert list_excluded(now(played)) == frozenset()
    assert view(played).body.startswith(before.body[:400])
    assert clean()


def test_what_is_pinned_or_unknown_or_first_is_not_left_out(played: Played) -> None:
    pin_originals(**who(played), ids=["toolu_2"])
    results = next(
        m.seq for m in view(played).messages if "toolu_2" in {r.id for r in m.shape.results}
    )
    for ids, code in (
        (["toolu_2"], "pinned"), ([f"msg_{results}"], "pinned"), (["toolu_99"], "unknown"),
        ([], "unknown"), (["msg_1"], "nothing"),
    ):  # fmt: skip
        assert (
            refused(lambda ids=ids: manual_changes.exclude_originals(**who(played), ids=ids)).code
            == code
        )
    pin_originals(**who(played), ids=[f"msg_{results}"])
    unpin_originals(**who(played), ids=["toolu_2"])
    assert (
        refused(lambda: manual_changes.exclude_originals(**who(played), ids=["toolu_2"])).code
        == "pinned"
    )


@pytest.mark.parametrize("seed", range(6))
def test_taking_back_gives_the_earlier_view_to_the_byte(seed: int) -> None:
    played = talk(stored_turns.played(), 5, seed)
    chance = random.Random(seed)
    acts = [
        lambda: compact(played),
        lambda: compact(played, "turns"),
        lambda: manual_changes.exclude_originals(**who(played), ids=[f"msg_{now(played).tip}"]),
        lambda: pin_originals(**who(played), ids=["toolu_1"]),
        lambda: summarise(played),
        lambda: manual_changes.edit_summary(
            **who(played), seq=current(played), text=WORDS + f"More {seed}."
        ),
    ]
    chance.shuffle(acts)
    done = 0
    for act in acts:
        before = view(played)
        try:
            row = act()
        except (ManualChangeError, AssertionError):
            continue
        if row is None:
            continue
        undone = manual_changes.undo_change(**who(played), seq=row.seq)
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
    found = find_summary(now(played))
    return found.current if found is not None else 0


def test_only_the_last_change_by_hand_is_taken_back_and_the_text_says_what_can_be_done(
    played: Played,
) -> None:
    row = compact(played)
    people_and_turns.answered(people_and_turns.next_turn(now(played)))
    error = refused(lambda: manual_changes.undo_change(**who(played), seq=row.seq))
    assert "went on" in error.text
    assert "sent in full again" in error.text
    automatic = played.conversation.transformations.filter(actor=None).first()
    assert automatic is not None
    assert (
        refused(lambda: manual_changes.undo_change(**who(played), seq=automatic.seq)).code
        == "moved"
    )


def test_a_person_rewords_a_summary_and_takes_it_back(played: Played) -> None:
    first = summarise(played)
    before = digest(played)
    longer = WORDS * 2 + "\n## Open\n- the rate"
    row = manual_changes.edit_summary(**who(played), seq=first.seq, text=longer)
    assert row is not None
    assert (row.kind, row.setting, row.actor) == ("summary", "edit", played.user)
    assert row.bytes_after > row.bytes_before
    assert wire.encode(longer)[1:-1] in view(played).body
    assert manual_changes.edit_summary(**who(played), seq=row.seq, text=longer) is None
    old = lambda: manual_changes.edit_summary(**who(played), seq=first.seq, text=WORDS)  # noqa: E731
    assert refused(old).code == "replaced"
    bad = lambda: manual_changes.edit_summary(**who(played), seq=row.seq, text=" ")  # noqa: E731
    assert "empty" in refused(bad).text
    grown = lambda: manual_changes.edit_summary(  # noqa: E731
        **who(played), seq=row.seq, text=WORDS * 500
    )
    assert "shorter" in refused(grown).text
    card = build_summary_card(now(played), row)
    assert card is not None
    assert [one.origin for one in card.versions] == ["by_hand", "edit"]
    assert [part.title for part in card.sections] == ["", "Open"]
    assert (card.can_edit, card.newest, card.count > 3) == (True, None, True)
    earlier = build_summary_card(now(played), first)
    assert earlier is not None
    assert (earlier.can_edit, earlier.newest) == (False, row.seq)
    assert earlier.calls is not None
    totals = earlier.calls
    assert (totals.model, totals.count, totals.written) == (stored_turns.MODEL, 1, 60)
    manual_changes.undo_change(**who(played), seq=row.seq)
    assert digest(played) == before
    assert clean()
