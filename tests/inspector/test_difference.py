"""What changed between two calls: blocks, parameters, and texts word by word."""

from __future__ import annotations

import pytest

from conversations.context.policy.policy import Policy
from conversations.context.view import edits, wire
from conversations.context.view.edits import SpliceBlocks, Trigger
from conversations.inspector.call_index import read_call_index
from conversations.inspector.calls import read_call
from conversations.inspector.difference import Altered, Difference, Run, Same, compare_calls
from conversations.inspector.sent_messages import trace_call
from conversations.log import append
from conversations.models import ApiCall, Conversation
from conversations.reductions.word_diff import MAX_PAIRS, DiffBudget, Piece, compare_texts
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db


def row_of(conversation: Conversation, n: int) -> ApiCall:
    row = read_call(conversation, read_call_index(conversation), n)
    assert row is not None
    return row


def compare(conversation: Conversation, a: int, b: int) -> Difference:
    one, other = row_of(conversation, a), row_of(conversation, b)
    return compare_calls(one, other, trace_call(one), trace_call(other))


def test_a_difference_counts_what_was_added_removed_and_altered() -> None:
    found = compare(stored_turns.played().conversation, 1, 3)
    assert (found.added, found.removed, found.altered) == (3, 0, 0)
    assert found.delta > 0
    assert found.prefix is not None
    assert (found.prefix.blocks, found.blocks) == (1, 4)
    assert isinstance(found.rows[0], Same)
    back = compare(stored_turns.played("bob").conversation, 3, 1)
    assert (back.added, back.removed, back.delta) == (0, 3, -found.delta)
    assert [row.index for row in back.rows if isinstance(row, Altered)] == [None] * 3


def test_a_shortened_result_is_one_altered_block_with_its_words() -> None:
    lease = people_and_turns.started_turn()
    stored_turns.close(
        lease, people_and_turns.opened(lease).call, people_and_turns.tool_call_ending("toolu_1")
    )
    content = people_and_turns.results("toolu_1").replace('"x"', '"one two three four"')
    append.store_results(lease=lease, content=content, estimate=20)
    stored_turns.close(
        lease, people_and_turns.opened(lease).call, people_and_turns.tool_call_ending("toolu_2")
    )
    view = stored_turns.loaded(lease).view
    shorter = '{"type":"tool_result","tool_use_id":"toolu_1","content":"one four"}'
    edit = SpliceBlocks(view.messages[2].seq, 0, 1, (shorter,))
    trigger = Trigger(41_000, 40_000, "estimated", "input_token_budget")
    change = edits.build_transformation(view, "compaction", trigger, (edit,), "note")
    append.record_transformation(lease=lease, change=change, policy=Policy(), summary_call=None)
    append.store_results(lease=lease, content=people_and_turns.results("toolu_2"), estimate=20)
    stored_turns.close(lease, people_and_turns.opened(lease).call, people_and_turns.complete())
    found = compare(people_and_turns.conversation_of(lease), 2, 3)
    assert (found.added, found.removed, found.altered) == (2, 0, 1)
    altered = next(row for row in found.rows if isinstance(row, Altered))
    assert altered.pieces is not None
    assert "".join(p.text for p in altered.pieces if p.kind != "new") == "one two three four"
    assert "".join(p.text for p in altered.pieces if p.kind != "gone") == "one four"
    assert altered.delta < 0


def test_many_blocks_that_left_together_are_one_row() -> None:
    lease = people_and_turns.started_turn()
    stored_turns.close(
        lease,
        people_and_turns.opened(lease).call,
        people_and_turns.tool_call_ending(*(f"t{n}" for n in range(12))),
    )
    append.store_results(
        lease=lease, content=people_and_turns.results(*(f"t{n}" for n in range(12))), estimate=20
    )
    stored_turns.close(lease, people_and_turns.opened(lease).call, people_and_turns.complete())
    found = compare(people_and_turns.conversation_of(lease), 1, 2)
    (run,) = [row for row in found.rows if isinstance(row, Run)]
    assert (run.what, len(run.rows), found.added) == ("added", 24, 24)
    assert run.delta == sum(row.delta for row in run.rows) > 0


def test_parameters_that_differ_are_named() -> None:
    played = stored_turns.played()
    one, other = row_of(played.conversation, 1), row_of(played.conversation, 3)
    values = wire.decode(other.envelope.text)
    values |= {"max_tokens": 9, "tools": [{"name": "a", "description": "b"}]}
    values["system"] = [{"type": "text", "text": "Be brief and kind."}]
    other.envelope.text, other.binding = wire.encode(values), "sha256:1"
    found = compare_calls(one, other, trace_call(one), trace_call(other))
    assert [each.name for each in found.parameters] == ["system", "max_tokens", "tool a"]
    assert found.prefix is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""), ("same", "same"), ("one two three", "one three"), ("a", "b"), ("", "new"),
        ("x " * 3_000, "x " * 2_000 + "[truncated]"), ("tail end", "head tail end"),
        ("Größe 漢字 x", "Größe 漢 字 x"), ("aa", "aaa"), ("abab", "ab"),
    ],
)  # fmt: skip
def test_the_pieces_of_two_texts_make_both_of_them(before: str, after: str) -> None:
    pieces = compare_texts(before, after, DiffBudget())
    assert pieces is not None
    if not any(piece.cut for piece in pieces):
        assert "".join(p.text for p in pieces if p.kind != "new") == before
        assert "".join(p.text for p in pieces if p.kind != "gone") == after
    lengths = {
        kind: sum(len(p.text) + p.cut + len(p.tail) for p in pieces if p.kind != kind)
        for kind in ("new", "gone")
    }
    assert lengths == {"new": len(before), "gone": len(after)}


def test_texts_too_far_apart_are_not_compared_word_by_word() -> None:
    budget = DiffBudget()
    left, right = ("a1 b2 " * 3_000, "c3 d4 " * 3_000)
    assert compare_texts(left, right, budget) is None
    assert budget.left == MAX_PAIRS
    assert compare_texts("one two", "one 2", budget) is not None
    assert budget.left < MAX_PAIRS
    long = compare_texts("a", "b" * 50_000, budget)
    assert long is not None
    assert Piece("new", "b" * 2_000, 46_000, "b" * 2_000) in long
