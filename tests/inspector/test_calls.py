"""One call in the inspector: every block with its state, what is gone, and what was checked."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from conversations.agent.ports import Ending, Sending
from conversations.agent.usage import Usage
from conversations.context.policy.policy import Policy
from conversations.context.steps import api_clearing
from conversations.context.view import edits, wire
from conversations.context.view.edits import SpliceBlocks, SpliceMessages, Trigger
from conversations.inspector.call_blocks import RemovedRow, Row, build_block_page, map_turns
from conversations.inspector.call_index import find_call_of_answer, find_change_key, read_call_index
from conversations.inspector.calls import CallPage, build_call_page, read_call
from conversations.inspector.full_blocks import list_removed_blocks, read_full_block
from conversations.inspector.raw_request import read_raw_request
from conversations.inspector.sent_messages import trace_call
from conversations.log import append
from conversations.log.leases import Lease
from conversations.models import ApiCall, ApiResult, Conversation
from conversations.reductions.pins import list_pins, pin_originals
from conversations.turns import calls, turns
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db


def page_of(conversation: Conversation, n: int, start: int = 0) -> CallPage:
    found = read_call_index(conversation)
    named, row = found.call(n), read_call(conversation, found, n)
    assert named is not None
    assert row is not None
    return build_call_page(found, named, row, None, start=start)


def row_of(conversation: Conversation, n: int) -> ApiCall:
    row = read_call(conversation, read_call_index(conversation), n)
    assert row is not None
    return row


def rows(page: CallPage) -> list[Row]:
    assert page.projection is not None
    return [row for row in page.projection.rows if isinstance(row, Row)]


def gaps(page: CallPage) -> list[RemovedRow]:
    assert page.projection is not None
    return [row for row in page.projection.rows if isinstance(row, RemovedRow)]


def summarised() -> tuple[Conversation, Lease]:
    """Play a turn, a second one, and a summary of what lies between the two prompts."""
    lease = people_and_turns.started_turn(people_and_turns.person("sue"))
    people_and_turns.answered(lease)
    lease = people_and_turns.next_turn(people_and_turns.conversation_of(lease))
    view = stored_turns.loaded(lease).view
    change = edits.build_transformation(
        view,
        "summary",
        Trigger(81_000, 80_000, "reported", "compaction_threshold_tokens"),
        (SpliceBlocks(1, 1, 0, ('{"type":"text","text":"s"}',)), SpliceMessages(2, 2)),
        "Summarised 1 message",
    )
    append.record_transformation(lease=lease, change=change, policy=Policy(), summary_call=None)
    people_and_turns.answered(lease)
    return people_and_turns.conversation_of(lease), lease


def test_the_blocks_sent_are_listed_in_order_with_their_states() -> None:
    conversation = stored_turns.played(title="Read the file").conversation
    page = page_of(conversation, 3)
    assert [(row.index, row.label, row.state) for row in rows(page)] == [
        (0, "Message", "verbatim"),
        (1, "Answer", "verbatim"),
        (2, "Tool call: Read a file", "verbatim"),
        (3, "Result: Read a file", "shortened"),
    ]
    short = rows(page)[3]
    assert (short.chip, short.step, short.text) == ("shortened 2.3k → 5 characters", 4, "")
    assert rows(page)[0].text == "Read the file"
    assert gaps(page) == []
    assert page.projection is not None
    assert page.projection.states == (("verbatim", "verbatim", 3), ("shortened", "shortened", 1))
    assert page.problem == ""


def test_a_call_proves_that_it_can_be_rebuilt_and_is_legal() -> None:
    conversation = stored_turns.played().conversation
    for n in (1, 2, 3):
        page = page_of(conversation, n)
        assert page.proof is not None
        assert (page.proof.is_same, page.proof.broken) == (True, "")
        assert page.proof.rebuilt.digest == page.row.body_digest
    assert page_of(conversation, 3).messages == 3
    assert page_of(conversation, 3).error_percent is not None


def test_the_cached_prefix_ends_where_the_context_was_changed() -> None:
    conversation = stored_turns.played().conversation
    prefix = page_of(conversation, 3).prefix
    assert prefix is not None
    assert prefix.kept is not None
    assert (prefix.kept.blocks, prefix.blocks, prefix.is_whole) == (1, 1, True)
    conversation, _ = summarised()
    prefix = page_of(conversation, 2).prefix
    assert prefix is not None
    assert prefix.kept is not None
    assert (prefix.kept.blocks, prefix.blocks) == (1, 1)
    assert page_of(conversation, 1).prefix is None


def test_what_a_summary_took_stands_as_one_row_that_opens() -> None:
    conversation, _ = summarised()
    page = page_of(conversation, 2)
    assert [row.state for row in rows(page)] == ["verbatim", "put-in", "verbatim"]
    (gap,) = gaps(page)
    assert (gap.fate, gap.blocks, gap.messages) == ("summary", 1, 1)
    assert gap.words.startswith("In summary: turn 1, 1 message, ")
    found = trace_call(row_of(conversation, 2)).found
    sides, after = list_removed_blocks(found, gap.step, gap.fate, map_turns(conversation), 0)
    assert [(side.label, side.text, side.turn) for side in sides] == [
        ("Answer", "Here you are.", 1)
    ]
    assert after is None
    assert list_removed_blocks(found, gap.step, "left out", {}, 0) == ([], None)


def test_a_block_is_shown_beside_its_original() -> None:
    played = stored_turns.played()
    found = trace_call(row_of(played.conversation, 3)).found
    held = frozenset({"toolu_1"})
    shown = read_full_block(found, 3, map_turns(played.conversation), (frozenset(), held))
    assert shown is not None
    assert (shown.original, shown.sent, shown.has_original) == (stored_turns.LONG, "short", True)
    assert shown.keep is not None
    assert (shown.keep.id, shown.keep.is_pinned, shown.row.is_pinned) == ("toolu_1", True, False)
    first = read_full_block(found, 0, {}, (frozenset({1}), frozenset()))
    assert first is not None
    assert (first.has_original, first.row.is_pinned) == (False, True)
    assert first.keep is not None
    assert first.keep.id == "msg_1"
    assert read_full_block(found, 4, {}, (frozenset(), frozenset())) is None
    assert read_full_block(found, -1, {}, (frozenset(), frozenset())) is None


def test_a_pin_counts_for_the_calls_behind_it() -> None:
    played = stored_turns.played()
    before = timezone.now()
    pin_originals(conversation_id=played.conversation.pk, actor_id=played.user.pk, ids=["msg_1"])
    conversation = Conversation.objects.get(pk=played.conversation.pk)
    assert list_pins(conversation) == {1}
    assert list_pins(conversation, before - timedelta(seconds=1)) == frozenset()
    assert not rows(page_of(conversation, 3))[0].is_pinned


def test_a_summary_call_shows_its_own_messages() -> None:
    conversation = stored_turns.played().conversation
    page = page_of(conversation, 2)
    assert page.is_own
    (row,) = rows(page)
    assert (row.state, row.text) == ("own", "They asked for the order.")
    assert page.prefix is None


def test_a_compaction_of_the_api_is_a_request_of_its_own() -> None:
    lease = people_and_turns.started_turn()
    people_and_turns.answered(lease)
    view = stored_turns.loaded(lease).view
    sent = calls.open_call(
        lease=lease_again(lease),
        sending=Sending(
            "summary",
            api_clearing.build_compaction_envelope(stored_turns.ENVELOPE),
            view.body,
            100,
            None,
            1,
        ),
    )
    page = page_of(people_and_turns.conversation_of(lease), 2)
    assert [row.label for row in rows(page)] == ["Message", "Answer"]
    assert page.proof is not None
    assert (page.proof.is_same, page.proof.broken) == (True, "")
    assert sent.call == page.row.pk


def lease_again(lease: Lease) -> Lease:
    return people_and_turns.claimed(
        turns.send_prompt(
            conversation=people_and_turns.conversation_of(lease), text="More", client_id=uuid4()
        )
    )


def test_what_the_api_was_expected_to_clear_is_sent_and_said() -> None:
    lease = people_and_turns.started_turn()
    stored_turns.close(
        lease, people_and_turns.opened(lease).call, people_and_turns.tool_call_ending("t1")
    )
    append.store_results(lease=lease, content=people_and_turns.results("t1"), estimate=20)
    view = stored_turns.loaded(lease).view
    change = api_clearing.build_expectation(
        view,
        api_clearing.Gauge(120_000, "reported", 200_000),
        api_clearing.Clearing(),
        api_clearing.Cleared(("t1",), 5),
    )
    append.record_transformation(lease=lease, change=change, policy=Policy(), summary_call=None)
    raw = {
        "input_tokens": 90, "output_tokens": 5,
        "context_management": {"applied_edits": [
            {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 1, "cleared_input_tokens": 7}
        ]},
    }  # fmt: skip
    usage = Usage(90, 5, 0, 0, 0, raw=wire.encode(raw))
    stored_turns.close(
        lease, people_and_turns.opened(lease).call, people_and_turns.complete(usage=usage)
    )
    page = page_of(people_and_turns.conversation_of(lease), 2)
    assert [row.state for row in rows(page)] == ["verbatim", "verbatim", "cleared"]
    assert page.cleared == 1
    assert page.usage is not None
    assert (page.usage.cleared_uses, page.usage.cleared) == (1, 7)


def test_a_long_request_comes_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conversations.inspector.call_blocks.PAGE", 3)
    conversation = stored_turns.played().conversation
    first, second = page_of(conversation, 3), page_of(conversation, 3, 3)
    assert first.projection is not None
    assert second.projection is not None
    assert (first.projection.before, first.projection.after, first.projection.last) == (None, 3, 3)
    assert (second.projection.before, second.projection.after) == (0, None)
    assert [row.index for row in rows(first) + rows(second)] == [0, 1, 2, 3]
    assert page_of(conversation, 3, 99).projection == first.projection


def test_damaged_rows_give_a_problem_in_words() -> None:
    conversation = stored_turns.played().conversation
    call = row_of(conversation, 3)
    call.tip = 77
    found = read_call_index(conversation)
    named = found.call(3)
    assert named is not None
    page = build_call_page(found, named, call, None)
    assert page.problem == "KeyError: 77"
    assert (page.projection, page.proof, page.composition) == (None, None, None)
    assert page.parameters is not None
    call.envelope.text = "[]"
    assert build_call_page(found, named, call, None).parameters is None
    shown = read_raw_request(call)
    assert shown.problem == "KeyError: 77"


def test_a_changed_body_is_seen() -> None:
    conversation = stored_turns.played().conversation
    call = row_of(conversation, 1)
    call.body_digest = "sha256:0"
    found = read_call_index(conversation)
    named = found.call(1)
    assert named is not None
    page = build_call_page(found, named, call, None)
    assert page.proof is not None
    assert not page.proof.is_same
    assert not read_raw_request(call).is_same


def test_the_raw_request_is_the_one_sent_and_its_readable_form_is_bounded() -> None:
    conversation = stored_turns.played(result="x" * 50_000).conversation
    call = row_of(conversation, 1)
    shown = read_raw_request(call)
    assert (shown.is_same, shown.problem) == (True, "")
    assert wire.decode(shown.text) == wire.decode(shown.rebuilt.body)
    lease = people_and_turns.started_turn(people_and_turns.person("bob"), "y" * 9_000)
    people_and_turns.answered(lease)
    long = read_raw_request(row_of(people_and_turns.conversation_of(lease), 1))
    assert "… (and 7,000 characters more)" in long.text
    assert "y" * 9_000 in long.rebuilt.body


def test_an_answer_leads_to_its_call_and_a_change_to_its_row() -> None:
    played = stored_turns.played()
    assert [find_call_of_answer(played.conversation, seq) for seq in (1, 2, 6)] == [None, 1, 3]
    other = stored_turns.played("bob")
    assert find_call_of_answer(other.conversation, 6) == 3
    assert find_change_key(played.conversation, 4) is not None
    assert find_change_key(played.conversation, 3) is None


def test_a_lost_call_and_one_that_failed_show_what_is_known() -> None:
    lease = people_and_turns.started_turn()
    sent = people_and_turns.opened(lease)
    stored_turns.close(lease, sent.call, Ending("lost"))
    page = page_of(people_and_turns.conversation_of(lease), 1)
    assert (page.call.status, page.usage, page.call.tokens_in) == ("lost", None, None)
    assert page.composition is not None
    assert page.composition.source == "estimated"
    stored_turns.fail(lease, "prompt is too long")
    failed = page_of(people_and_turns.conversation_of(lease), 2)
    assert (failed.call.status, failed.call.error) == ("error", "invalid_request")
    assert ApiResult.objects.count() == 2


def test_a_projection_of_nothing_is_empty() -> None:
    conversation = stored_turns.played().conversation
    found = trace_call(row_of(conversation, 1)).found
    empty = build_block_page(type(found)(found.view, (), (), 0), {}, frozenset())
    assert (empty.rows, empty.total, empty.last, empty.after) == ((), 0, 0, None)
