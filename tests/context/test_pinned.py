"""Pins found in the log, and originals restored: the block, or the whole unit."""

from __future__ import annotations

import pytest

from conversations.context.errors import RuleError
from conversations.context.steps.pinned import Pin, estimate_pins, find_originals, find_pins
from conversations.context.steps.restore import build_restore
from conversations.context.view import edits, wire
from conversations.context.view.edits import SpliceBlocks, SpliceMessages
from conversations.context.view.view import View
from tests.context.independent import violations
from tests.context.samples import (
    THOUGHT,
    answer,
    blocks,
    prompt,
    result,
    results,
    text,
    use,
    view_of,
)

LONG = "a line of the page\n" * 60
TALK = view_of(
    prompt("compare them"),
    answer(THOUGHT, use("a"), use("b")),
    results(result("a", LONG), result("b", LONG)),
    answer("Both are good."),
    prompt("thanks " * 100),
    answer(THOUGHT, use("c")),
    results(result("c", LONG)),
    answer("You are welcome."),
)
LOG = TALK.messages
#: Where both results of the first batch were compacted.
SHORT = edits.apply(
    TALK,
    "compaction",
    [SpliceBlocks(3, at, 1, (wire.encode(result(name, "short")),)) for at, name in enumerate("ab")],
)
#: Where everything between the first message and the last round was summarised.
DROPPED = edits.apply(
    TALK,
    "summary",
    [SpliceBlocks(1, 1, 0, (wire.encode(text("[CONTEXT SUMMARY]")),)), SpliceMessages(2, 5)],
)


def brought_back(view: View, *pins: Pin) -> View:
    change = build_restore(view, *find_originals(view, LOG, pins))
    assert change is not None
    asked = change.view_after.append(view_of(*[prompt("x")] * 99).messages[-1])
    assert violations(asked.body) == []
    return edits.apply(view, change.kind, edits.load_edits(edits.dump_edits(change.edits)))


def test_a_pin_is_named_as_recall_names_it() -> None:
    assert find_pins(LOG, ["a", "msg_3", "3", "a"]) == ["a", 3, 3, "a"]
    for name in ("d", "", "msg_9", "msg_", "x" * 201, "9" * 19):
        assert find_pins(LOG, [name, "a"]) == [None, "a"]


def test_pins_weigh_what_their_originals_weigh_and_nothing_twice() -> None:
    whole, one = LOG[2].tokens, LOG[2].blocks[0].tokens
    assert estimate_pins(LOG, ["a"]) == one
    assert estimate_pins(LOG, [3]) == estimate_pins(LOG, [3, "a"]) == whole
    assert estimate_pins(LOG, ["a", "c", 1]) == one + LOG[6].blocks[0].tokens + LOG[0].tokens
    assert estimate_pins(LOG, ["gone", 99]) == estimate_pins(LOG, []) == 0


def test_only_the_result_that_was_asked_for_comes_back() -> None:
    done = brought_back(SHORT, "a")
    assert blocks(done, 2) == [result("a", LONG), result("b", "short")]
    assert done.messages[2].by == ("restore", "compaction")
    both = brought_back(SHORT, "a", "b")
    assert blocks(both, 2) == [result("a", LONG), result("b", LONG)]
    assert brought_back(SHORT, 3).body == both.body


def test_what_is_there_is_not_put_back() -> None:
    for pins in (["c"], [1], [7, "c"], [8], [6], []):
        assert build_restore(SHORT, *find_originals(SHORT, LOG, pins)) is None
    assert build_restore(TALK, *LOG) is None


def test_a_dropped_result_comes_back_with_its_call_and_its_whole_batch() -> None:
    done = brought_back(DROPPED, "a")
    assert [message.seq for message in done.messages] == [1, 2, 3, 6, 7, 8]
    assert blocks(done, 1) == [use("a"), use("b")]
    assert blocks(done, 2) == [result("a", LONG), result("b", LONG)]
    assert blocks(done, 0)[1] == text("[CONTEXT SUMMARY]")


def test_a_dropped_message_without_calls_comes_back_alone() -> None:
    assert [m.seq for m in brought_back(DROPPED, 5).messages] == [1, 5, 6, 7, 8]
    assert [m.seq for m in brought_back(DROPPED, 4).messages] == [1, 4, 6, 7, 8]
    assert [m.seq for m in brought_back(DROPPED, 2, "c").messages] == [1, 2, 3, 6, 7, 8]


def test_thinking_that_is_in_view_is_no_difference_and_what_lost_a_block_is_replaced() -> None:
    assert build_restore(TALK, LOG[1]) is None
    shorter = edits.apply(TALK, "shrink", [SpliceBlocks(2, 1, 1, (wire.encode(use("a", "f")),))])
    done = brought_back(shorter, 2)
    assert blocks(done, 1) == [use("a"), use("b")]


def test_a_view_is_judged_with_what_will_be_asked_next() -> None:
    waiting = edits.apply(TALK, "trim", [SpliceMessages(8, 8)])
    change = build_restore(waiting, LOG[7])
    assert change is not None
    assert change.view_after.messages[-1] == LOG[7]
    with pytest.raises(RuleError):
        build_restore(DROPPED, LOG[2])
