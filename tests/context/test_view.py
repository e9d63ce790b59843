from __future__ import annotations

import pytest

from conversations.context.errors import WireError
from conversations.context.view.view import Block, Message, View
from tests.context.samples import IMAGE, THOUGHT, answer, content, prompt, result, results, view_of


def test_a_view_that_branches_does_not_disturb_the_other() -> None:
    base = view_of(prompt("hello"))
    left = base.append(Message.parse(2, "answer", content(["left"])))
    right = base.append(Message.parse(3, "answer", content(["right"])))
    assert [message.seq for message in left.messages] == [1, 2]
    assert [message.seq for message in right.messages] == [1, 3]
    assert base.length == 1
    assert left != right
    assert (base == 1) is False


def test_totals_are_sums_and_size_is_the_bytes_sent() -> None:
    view = view_of(prompt("grüße 漢字"), answer("yes"), prompt(IMAGE, "see"))
    assert view.tokens == sum(message.tokens for message in view.messages)
    # Two brackets and a comma too many.
    assert view.size == len(view.body.encode()) + 1


def test_a_message_without_blocks_is_not_sent_and_weighs_nothing() -> None:
    view = view_of(prompt("a"))
    empty = view.append(Message(2, "answer", "[]", 4))
    assert empty.body == view.body
    assert empty.size == view.size


def test_what_was_read_once_is_not_read_again() -> None:
    read: list[int] = []
    first = view_of(prompt("a"), answer("b"))

    def fold(view: View) -> list[int]:
        return view.fold_cached("key", list[int], lambda state, message: state.append(message.seq))

    def count(view: View) -> None:
        view.fold_cached("other", lambda: read, lambda state, message: state.append(message.seq))

    count(first)
    second = first.append(Message.parse(3, "prompt", content(["c"])))
    count(second)
    assert read == [1, 2, 3]
    assert fold(second) == [1, 2, 3]
    # A shorter view of the same trail is read afresh.
    assert fold(first) == [1, 2]


def test_views_that_grow_by_the_same_message_share_what_was_folded() -> None:
    first, more = view_of(prompt("a"), answer("b")), Message.parse(3, "prompt", content(["c"]))
    second = first.append(more)
    assert first.append(Message.parse(3, "prompt", more.content)).trail is second.trail
    other = first.append(Message.parse(3, "prompt", content(["d"])))
    assert other.trail is not second.trail
    assert [message.content for message in second.messages[2:]] == [more.content]
    assert second.append(Message.parse(4, "answer", "[]")).trail is second.trail


def test_a_block_is_an_object_with_a_type() -> None:
    with pytest.raises(WireError):
        Block('{"no":"type"}').value  # noqa: B018
    with pytest.raises(WireError):
        Block("[1]").value  # noqa: B018
    block = Block('{"type":"tool_result","tool_use_id":"t","is_error":true}')
    assert (block.id, block.is_error, block.type) == ("t", True, "tool_result")
    assert Block('{"type":"tool_use","id":"u"}').id == "u"


def test_thinking_is_seen_where_it_is_and_not_where_it_is_only_named() -> None:
    view = view_of(
        prompt("about thinking"),
        answer('she was "thinking"'),
        results(result("x", '"thinking"')),
        answer(THOUGHT, "done"),
        answer({"type": "redacted_thinking", "data": "x"}),
    )
    assert [message.has_thinking for message in view.messages] == [False, False, False, True, True]
