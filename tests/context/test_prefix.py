"""The prefix: the blocks that two requests have in common at the front, and no more."""

from __future__ import annotations

import pytest

from conversations.context.view import edits
from conversations.context.view.edits import SpliceBlocks, SpliceMessages
from conversations.context.view.prefix import CommonPrefix, compare_prefix, count_added
from conversations.context.view.view import Message, View
from tests.context.samples import answer, content, prompt, result, results, use, view_of

TALK = view_of(
    prompt("one", "two"), answer(use("t1")), results(result("t1", "long")), answer("end")
)


def test_a_view_that_only_grew_keeps_all_of_the_one_before() -> None:
    grown = TALK.append(Message.parse(9, "prompt", content(["more"])))
    assert compare_prefix(TALK, grown) == CommonPrefix(5, TALK.tokens)
    assert compare_prefix(grown, TALK) == CommonPrefix(5, TALK.tokens)
    assert compare_prefix(View(), TALK) == CommonPrefix(0, 0)


@pytest.mark.parametrize(
    ("edit", "blocks"),
    [
        (SpliceBlocks(1, 0, 1, ('{"type":"text","text":"other"}',)), 0),
        (SpliceBlocks(1, 2, 0, ('{"type":"text","text":"summary"}',)), 2),
        (SpliceBlocks(3, 0, 1, (content([result("t1", "l")])[1:-1],)), 3),
        (SpliceMessages(2, 3), 2),
        (SpliceMessages(2, 2), 2),
    ],
)
def test_an_edit_ends_the_prefix_where_it_stands(
    edit: SpliceBlocks | SpliceMessages, blocks: int
) -> None:
    after = edits.apply(TALK, "compaction", [edit])
    found = compare_prefix(TALK, after)
    assert found.blocks == blocks
    sent = [block for message in after.messages for block in message.blocks]
    assert 0 <= found.tokens <= TALK.tokens
    assert found.tokens >= sum(block.tokens for block in sent[:blocks])


def test_messages_without_blocks_are_not_sent_and_do_not_count() -> None:
    bare = edits.apply(TALK, "trim", [SpliceBlocks(4, 0, 1)])
    assert compare_prefix(TALK, bare).blocks == 4
    grown = bare.append(Message.parse(9, "prompt", content(["more"])))
    assert compare_prefix(bare, grown).blocks == 4


def test_added_is_what_follows_the_previous_request_or_the_first_difference() -> None:
    sizes = [message.tokens for message in TALK.messages]
    # The request before the last answer had the first three messages.
    assert count_added(TALK, TALK) == sizes[3]
    grown = TALK.append(Message.parse(9, "prompt", content(["more"])))
    assert count_added(grown, grown) == sizes[3] + grown.messages[4].tokens
    assert count_added(View(), View().append(TALK.messages[0])) == sizes[0]
    short = edits.apply(TALK, "compaction", [SpliceBlocks(3, 0, 1, ('{"type":"text"}',))])
    assert count_added(TALK, short) == sum(message.tokens for message in short.messages[2:])
