"""Provenance: every original is in exactly one state, and what was sent is listed as it was."""

from __future__ import annotations

from collections import Counter

import pytest

from conversations.context.errors import EditError
from conversations.context.steps.kinds import TransformationKind
from conversations.context.steps.meter_parts import PARTS, PartCounter, find_part
from conversations.context.steps.restore import build_restore
from conversations.context.view import edits
from conversations.context.view.edits import Edit, SpliceBlocks, SpliceMessages
from conversations.context.view.provenance import Provenance, Step, trace_blocks
from conversations.context.view.view import Block, Kind, Message, View
from tests.context.endpoints import Expected
from tests.context.samples import (
    IMAGE,
    THOUGHT,
    answer,
    content,
    prompt,
    result,
    results,
    text,
    use,
    view_of,
)
from tests.context.samples import Part as Said
from tests.context.story import Story

TALK = [
    prompt("one"),
    answer(THOUGHT, use("t1"), use("t2")),
    results(result("t1", "long " * 90), result("t2")),
    answer(THOUGHT, "two"),
    prompt("three"),
]
SHORT = content([result("t1", "long…")])[1:-1]


def messages(talk: list[tuple[Kind, list[Said]]]) -> list[Message]:
    return list(view_of(*talk).messages)


def changed(*changes: Edit, kind: TransformationKind = "compaction", at: int = 9) -> Step:
    return Step(at, kind, tuple(changes))


def states(found: Provenance) -> dict[tuple[int, int], str]:
    """Give the state of every original."""
    there = {one.original.key: one.state for one in found.sent if one.original}
    gone = {one.original.key: one.fate for one in found.gone}
    assert not there.keys() & gone.keys()
    return {**there, **gone}


def lawful(found: Provenance, entries: list[Message | Step]) -> None:
    """Hold what is listed against the view and the originals."""
    view = found.view
    assert [one.block for one in found.sent] == [b for m in view.messages for b in m.blocks]
    assert [(one.seq, one.kind, one.at) for one in found.sent] == [
        (m.seq, m.kind, at) for m in view.messages for at in range(len(m.blocks))
    ]
    kept = [entry for entry in entries if isinstance(entry, Message)]
    every = Counter((m.seq, at) for m in kept for at in range(len(m.blocks)))
    there = Counter(one.original.key for one in found.sent if one.original)
    assert there + Counter(one.original.key for one in found.gone) == every
    assert found.messages == len(kept)
    for one in found.sent:
        is_alike = one.original is not None and one.original.block.text == one.block.text
        assert (one.state in ("verbatim", "restored")) <= is_alike
        assert (one.state in ("shortened", "changed")) <= (one.step > 0 and not is_alike)
        assert (one.state == "put in") == (one.original is None)
    frames = sum(m.tokens - sum(b.tokens for b in m.blocks) for m in view.messages)
    assert sum(one.block.tokens for one in found.sent) + frames == view.tokens


def path_entries(story: Story) -> list[Message | Step]:
    """Give the path of a story as entries with their numbers."""
    found: list[Message | Step] = []
    for number, entry in story.path():
        match entry:
            case Message():
                found.append(entry)
            case Expected(ids):
                found.append(Step(number, "clearing", cleared=ids))
            case (kind, changes):
                found.append(Step(number, kind, changes))
    return found


@pytest.mark.parametrize("part", range(8))
def test_every_original_of_a_story_is_in_one_state_at_every_call(part: int) -> None:
    met: set[str] = set()
    for seed in range(part * 25, part * 25 + 25):
        story = Story(seed)

        def seen(view: View, story: Story = story) -> None:
            entries = path_entries(story)
            found = trace_blocks(entries)
            lawful(found, entries)
            assert found.view == view
            met.update(states(found).values())
            weights = PartCounter().messages(view.messages)
            assert weights.total() == view.tokens

        story.sends = seen
        story.live()
    assert met >= {"verbatim", "summary", "left out", "thinking"}


def test_within_budget_everything_is_verbatim() -> None:
    found = trace_blocks(messages(TALK))
    lawful(found, [*messages(TALK)])
    assert {*states(found).values()} == {"verbatim"}
    assert {one.step for one in found.sent} == {0}
    assert trace_blocks([]) == Provenance(View(), (), (), 0)


def test_a_shortened_result_stands_for_its_original_and_thinking_behind_it_goes() -> None:
    found = trace_blocks([*messages(TALK), changed(SpliceBlocks(3, 0, 1, (SHORT,)))])
    lawful(found, [*messages(TALK)])
    assert states(found)[3, 0] == "shortened"
    assert states(found)[3, 1] == states(found)[2, 0] == "verbatim"
    assert states(found)[4, 0] == "thinking"
    (short,) = [one for one in found.sent if one.state == "shortened"]
    assert (short.step, short.block.by) == (9, "compaction")
    assert [(gone.original.key, gone.step) for gone in found.gone] == [((4, 0), 9)]


def test_what_a_summary_replaces_is_in_it_and_what_it_adds_was_put_in() -> None:
    words = content([text("[CONTEXT SUMMARY]")])[1:-1]
    found = trace_blocks(
        [
            *messages(TALK),
            changed(SpliceBlocks(1, 1, 0, (words,)), SpliceMessages(2, 3), kind="summary"),
        ]
    )
    assert [one.state for one in found.sent] == ["verbatim", "put in", "verbatim", "verbatim"]
    assert Counter(gone.fate for gone in found.gone) == {"summary": 5, "thinking": 1}
    newer = content([text("[CONTEXT SUMMARY] and more")])[1:-1]
    again = trace_blocks(
        [
            *messages(TALK),
            changed(SpliceBlocks(1, 1, 0, (words,)), SpliceMessages(2, 3), kind="summary"),
            changed(SpliceBlocks(1, 1, 1, (newer,)), kind="summary", at=12),
        ]
    )
    lawful(again, [*messages(TALK)])
    assert [(one.step, one.state) for one in again.sent][1] == (12, "put in")
    assert [gone.step for gone in again.gone] == [9] * 6


def test_what_was_dropped_is_left_out_until_it_is_brought_back() -> None:
    log = messages(TALK)
    dropped = changed(SpliceMessages(2, 3), kind="trim")
    before = trace_blocks([*log, dropped])
    assert {gone.fate for gone in before.gone} == {"left out", "thinking"}
    change = build_restore(before.view, log[1], log[2])
    assert change is not None
    after = trace_blocks([*log, dropped, Step(12, change.kind, change.edits)])
    lawful(after, [*log])
    assert [one.state for one in after.sent] == [
        "verbatim",
        *["restored"] * 4,
        "verbatim",
        "verbatim",
    ]
    assert {one.step for one in after.sent if one.state == "restored"} == {12}
    # The thinking does not come back.
    assert {gone.original.key for gone in after.gone} == {(2, 0), (4, 0)}
    assert {
        one.state for one in trace_blocks([*log, dropped, Step(12, change.kind, change.edits)]).sent
    }


def test_a_shortened_block_is_brought_back_in_its_place() -> None:
    log = messages(TALK)
    short = changed(SpliceBlocks(3, 0, 1, (SHORT,)))
    change = build_restore(trace_blocks([*log, short]).view, log[2])
    assert change is not None
    found = trace_blocks([*log, short, Step(12, change.kind, change.edits)])
    assert states(found)[3, 0] == "restored"


def test_blocks_that_a_step_writes_again_unchanged_stay_what_they_were() -> None:
    twin = content([text("same"), text("same"), text("other")])
    log = [Message.parse(1, "prompt", twin)]
    put = Message.parse(1, "prompt", content([text("same"), text("same"), text("oth")]))
    found = trace_blocks(
        [*log, changed(SpliceMessages(1, 1, ((1, "prompt", put.content),)), kind="shrink")]
    )
    lawful(found, [*log])
    assert [one.original.at for one in found.sent if one.original] == [0, 1, 2]
    assert [one.state for one in found.sent] == ["verbatim", "verbatim", "shortened"]
    longer = changed(SpliceBlocks(1, 2, 1, (content(["other words"])[1:-1],)), kind="shrink")
    assert [one.state for one in trace_blocks([*log, longer]).sent][2] == "changed"


def test_thinking_that_a_rebind_drops_is_gone_as_thinking() -> None:
    found = trace_blocks([*messages(TALK), changed(SpliceBlocks(2, 0, 1), kind="rebind")])
    assert [gone.fate for gone in found.gone] == ["thinking", "thinking"]
    tail = trace_blocks([*messages(TALK), changed(SpliceBlocks(2, 0, 0), kind="rebind")])
    assert [gone.original.key for gone in tail.gone] == [(2, 0), (4, 0)]


def test_what_the_api_clears_is_sent_and_cleared() -> None:
    log = messages(TALK)
    found = trace_blocks([*log, Step(9, "clearing", cleared=("t1",))])
    assert states(found)[3, 0] == "cleared"
    assert states(found)[2, 1] == "verbatim"
    assert found.view.cleared == ("t1",)
    again = trace_blocks(
        [*log, Step(9, "clearing", cleared=("t1",)), Step(10, "clearing", cleared=())]
    )
    assert states(again)[3, 0] == "verbatim"


def test_an_edit_that_does_not_fit_is_refused_as_by_the_fold_itself() -> None:
    with pytest.raises(EditError):
        trace_blocks([*messages(TALK), changed(SpliceBlocks(7, 0, 1))])


def test_the_parts_of_a_message_are_told_apart_and_add_up() -> None:
    def part(kind: Kind, value: dict[str, object], by: str = "") -> str:
        return find_part(kind, Block(content([value])[1:-1], by))

    assert part("prompt", text("a")) == "prompts"
    assert part("prompt", text("a"), "summary") == "summary"
    assert part("prompt", text("a"), "shrink") == "prompts"
    assert part("prompt", IMAGE) == "attachments"
    assert part("answer", text("a")) == "answers"
    assert part("answer", use("t1")) == "answers"
    assert part("answer", THOUGHT) == "thinking"
    assert part("answer", {"type": "compaction", "content": "a"}) == "summary"
    assert part("answer", {"type": "web_search_tool_result", "tool_use_id": "s"}) == "results"
    assert part("results", result("t1")) == "results"
    scales, view = PartCounter(), view_of(*TALK)
    parts = scales.messages(view.messages)
    assert scales.messages(view.messages) == parts
    assert parts.total() == view.tokens
    assert parts.keys() <= {*PARTS}
    bare = edits.apply(view, "trim", [SpliceBlocks(5, 0, 1), SpliceBlocks(4, 0, 2)])
    weights = PartCounter().messages(bare.messages)
    assert weights.total() == bare.tokens
