from __future__ import annotations

import pytest

from conversations.context.errors import EditError
from conversations.context.view import edits
from conversations.context.view.edits import SpliceBlocks, SpliceMessages
from tests.context.replay import replay_entries
from tests.context.samples import (
    THOUGHT,
    answer,
    blocks,
    content,
    prompt,
    result,
    results,
    text,
    use,
    view_of,
)

TALK = [
    prompt("one"),
    answer(THOUGHT, use("t1"), use("t2")),
    results(result("t1"), result("t2")),
    answer(THOUGHT, "two"),
    prompt("three"),
]


def test_edits_are_applied_in_order_and_totals_follow() -> None:
    view = view_of(*TALK)
    done = edits.apply(
        view,
        "summary",
        [
            SpliceBlocks(1, 1, 0, ('{"type":"text","text":"new"}',)),
            SpliceMessages(2, 3),
            SpliceMessages(4, 4, ((4, "answer", content(["replaced"])),)),
        ],
    )
    assert blocks(done, 0) == [text("one"), text("new")]
    assert [message.seq for message in done.messages] == [1, 4, 5]
    assert done.tokens == sum(message.tokens for message in done.messages)
    assert done.size == 2 + sum(message.size for message in done.messages)
    assert done.edits == 1
    assert done.messages[0].by == ("", "summary")


def test_without_an_edit_the_view_is_the_same_and_not_counted_as_edited() -> None:
    view = edits.apply(view_of(*TALK), "trim", [SpliceMessages(5, 5)])
    assert edits.apply(view, "restore", ()) is view
    assert view.edits == 1


def test_thinking_behind_an_edit_is_dropped_and_before_it_stays() -> None:
    view = view_of(*TALK)
    done = edits.apply(view, "compaction", [SpliceBlocks(2, 2, 1)])
    assert [block["type"] for block in blocks(done, 1)] == ["thinking", "tool_use"]
    assert [block["type"] for block in blocks(done, 3)] == ["text"]
    early = edits.apply(view, "compaction", [SpliceBlocks(1, 0, 0, (content(["x"])[1:-1],))])
    assert not any(message.has_thinking for message in early.messages)
    assert early.size == 2 + sum(message.size for message in early.messages)


@pytest.mark.parametrize(
    "edit",
    [
        SpliceBlocks(9, 0, 0),
        SpliceBlocks(1, 1, 1),
        SpliceBlocks(1, -1, 0),
        SpliceMessages(2, 3, ((4, "answer", "[]"),)),
        SpliceMessages(2, 3, ((3, "answer", "[]"), (2, "answer", "[]"))),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(edit: edits.Edit) -> None:
    with pytest.raises(EditError):
        edits.apply(view_of(*TALK), "trim", [edit])


def test_dump_and_load_are_inverse() -> None:
    made = (
        SpliceBlocks(3, 0, 2, ('{"a":1.0}', "é\u0000")),
        SpliceMessages(1, 2, ((1, "prompt", "[]"),)),
    )
    assert edits.load_edits(edits.dump_edits(made)) == made
    with pytest.raises(EditError):
        edits.load_edits('[["unknown",1]]')


def test_replay_folds_messages_and_changes_in_order() -> None:
    view = view_of(*TALK)
    change = (SpliceMessages(2, 3),)
    done = replay_entries([*view.messages[:4], ("trim", change), view.messages[4]])
    assert [message.seq for message in done.messages] == [1, 4, 5]
    assert replay_entries([], view) is view
    assert replay_entries([]).length == 0
