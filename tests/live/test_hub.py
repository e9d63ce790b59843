"""What the hub makes of frames and text: each page gets what it lacks, once, or a snapshot."""

from __future__ import annotations

import pytest

from conversations.agent.events import (
    Event,
    MeterMoved,
    RoundChanged,
    RoundOpened,
    TextGrew,
    TurnChanged,
    TurnClosed,
    TurnOpened,
)
from conversations.live.hub import KEPT, Frame, Reader, Topic
from conversations.log.page_version import VersionStep
from conversations.transcript.shapes import Live

OPENED = RoundOpened(1, 1)


def page_at(version: int, topic: Topic | None = None) -> tuple[Topic, Reader]:
    """Have a page that shows a version."""
    topic = topic or Topic()
    reader = Reader(topic)
    reader.begin(version)
    topic.readers.add(reader)
    return topic, reader


def grew(closed: str, tail: str = "") -> TextGrew:
    return TextGrew(1, 1, "", closed, tail)


def streaming(base: int = 9, *, is_own: bool = False) -> Topic:
    """Make a topic in which the first round was opened, at a version, and nothing said."""
    topic = Topic()
    topic.follow_state(OPENED, (base - 1, base), is_own=is_own)
    return topic


# Frames.


@pytest.mark.parametrize(
    ("step", "found", "version"),
    [
        ((5, 6), ["x"], 6),
        # A page that has some of it, or more, takes what is new of it.
        ((4, 6), ["x"], 6),
        ((5, 5), ["x"], 5),
        ((4, 4), ["x"], 5),
        # What a snapshot had is not sent again.
        ((4, 5), [], 5),
        ((2, 3), [], 5),
        # What is lost shows with the next frame.
        ((6, 7), None, 5),
        ((6, 6), None, 5),
        (None, ["x"], 5),
    ],
)
def test_a_page_takes_the_next_step_drops_what_it_has_and_gets_a_snapshot_behind_a_gap(
    step: VersionStep | None, found: list[str] | None, version: int
) -> None:
    topic, reader = page_at(5)
    topic.publish(Frame("x", step))
    assert reader.read() == found
    assert reader.version == version


def test_pages_of_one_conversation_may_show_different_versions() -> None:
    topic, first = page_at(5)
    _, second = page_at(6, topic)
    topic.publish(Frame("a", (5, 6)))
    topic.publish(Frame("b", (6, 7)))
    assert first.read() == ["a", "b"]
    assert second.read() == ["b"]
    assert first.version == second.version == 7


def test_a_frame_that_text_builds_on_is_sent_to_a_page_that_has_its_change() -> None:
    topic, reader = page_at(5)
    topic.publish(Frame("an empty round", (4, 5), is_base=True))
    assert reader.read() == ["an empty round"]


def test_a_page_that_is_behind_a_version_takes_a_snapshot_and_others_hear_nothing() -> None:
    topic, behind = page_at(5)
    _, reader = page_at(6, topic)
    assert topic.is_behind(6)
    topic.demand_version(6)
    assert behind.read() is None
    assert reader.read() == []
    behind.begin(6)
    assert not topic.is_behind(6)


def test_everybody_takes_a_snapshot_where_no_frame_leads() -> None:
    topic, reader = page_at(5)
    topic.demand_snapshots()
    assert reader.read() is None
    reader.begin(5)
    topic.publish(Frame(None, (5, 6)))
    assert reader.read() is None


def test_a_page_that_fell_behind_takes_a_snapshot() -> None:
    topic, reader = page_at(5)
    for _ in range(KEPT + 1):
        topic.publish(Frame("x"))
    assert reader.read() is None


def test_frames_are_kept_until_every_page_has_read_them() -> None:
    topic, first = page_at(5)
    _, second = page_at(5, topic)
    for html in "ab":
        topic.publish(Frame(html))
    assert first.read() == ["a", "b"]
    assert len(topic.frames) == 2
    topic.publish(Frame("c"))
    assert second.read() == ["a", "b", "c"]
    assert [frame.html for frame in topic.frames] == ["c"]
    # A page that takes a snapshot has read all.
    first.begin(5)
    assert not topic.frames


def test_a_frame_that_no_page_takes_is_not_wanted() -> None:
    topic, _ = page_at(5)
    Reader(topic)
    assert topic.is_wanted((5, 6), is_base=False)
    assert topic.is_wanted(None, is_base=False)
    assert not topic.is_wanted((4, 5), is_base=False)
    assert topic.is_wanted((4, 5), is_base=True)
    assert not topic.is_wanted((6, 7), is_base=True)
    assert not Topic().is_wanted(None, is_base=False)


def test_a_frame_behind_one_that_a_page_has_not_read_yet_is_wanted() -> None:
    """A turn waits for its person in the step of the round that is shown just before it."""
    topic, reader = page_at(5)
    topic.publish(Frame("round", (5, 6)))
    for step in ((6, 6), (6, 7)):
        assert topic.is_wanted(step, is_base=False)
    assert not topic.is_wanted((5, 6), is_base=False)
    topic.publish(Frame("turn", (6, 6)))
    assert reader.read() == ["round", "turn"]
    assert reader.version == 6


# Text.


def test_text_is_put_together_in_its_order() -> None:
    topic = streaming(9)
    took = [topic.follow_text(grew("a", "b"), (9, 1)), topic.follow_text(grew("b", "c"), (9, 2))]
    assert took == ["new", "new"]
    assert topic.live == Live(1, 1, "", "ab", "c")


def test_text_that_comes_twice_is_taken_once() -> None:
    topic = streaming(9)
    assert [topic.follow_text(grew("a"), (9, 1)) for _ in range(2)] == ["new", "old"]
    assert topic.live == Live(1, 1, "", "a")


def test_text_behind_a_gap_is_not_taken() -> None:
    topic = streaming(9)
    assert topic.follow_text(grew("c"), (9, 2)) == "gap"
    assert topic.live == Live(1, 1)
    assert Topic().follow_text(grew("c"), (9, 2)) == "gap"


def test_a_round_that_is_opened_again_begins_with_no_text() -> None:
    """The call before it was cut: its text is not that of the new one, and comes too late."""
    topic = streaming(9)
    topic.follow_text(grew("a"), (9, 1))
    topic.follow_state(OPENED, (10, 12), is_own=False)
    assert topic.follow_text(grew("b"), (9, 2)) == "old"
    assert topic.follow_text(grew("c"), (12, 1)) == "new"
    assert topic.live == Live(1, 1, "", "c")


def test_text_whose_opening_was_lost_is_not_taken_for_that_of_the_round_before() -> None:
    topic = streaming(9)
    topic.follow_text(grew("a"), (9, 1))
    assert [topic.follow_text(grew("b"), (12, at)) for at in (1, 2)] == ["gap", "gap"]


@pytest.mark.parametrize("event", [RoundChanged(1, 1), TurnClosed(1)])
def test_text_of_a_round_that_is_stored_is_old(event: Event) -> None:
    topic = streaming(9)
    topic.follow_state(event, (9, 11), is_own=False)
    assert topic.live is None
    assert topic.follow_text(grew("late"), (9, 1)) == "old"


def test_a_worker_that_lost_its_turn_is_not_heard() -> None:
    """It commits nothing, so all it says stands at a version before the round of the new one."""
    topic = streaming(12)
    assert topic.is_of_the_past((9, 9))
    assert not topic.is_of_the_past((12, 12))
    assert not topic.is_of_the_past((9, 13))
    assert not topic.is_of_the_past(None)


def test_a_worker_whose_turn_others_ended_is_not_heard_any_more() -> None:
    topic = streaming(9)
    topic.follow_state(TurnClosed(1), (9, 14), is_own=False)
    assert topic.follow_text(grew("late"), (9, 1)) == "old"
    topic.follow_state(TurnOpened(2), (14, 16), is_own=False)
    topic.follow_state(RoundOpened(2, 1), (16, 17), is_own=False)
    assert topic.follow_text(TextGrew(2, 1, "", "b", ""), (17, 1)) == "new"


def test_a_turn_that_ended_has_no_tool_that_still_says_how_far_it_is() -> None:
    """Its worker died in the tool, so nobody else took the words back."""
    topic = streaming()
    topic.progress["toolu_1"] = "<i>half</i>"
    topic.follow_state(RoundChanged(1, 1), (9, 10), is_own=False)
    assert topic.progress
    topic.follow_state(TurnClosed(1), None, is_own=False)
    assert (topic.live, topic.progress) == (None, {})


def test_an_older_turn_that_is_shown_anew_leaves_the_answer_on_its_way() -> None:
    topic = Topic()
    topic.follow_state(RoundOpened(2, 1), (8, 9), is_own=False)
    topic.follow_text(TextGrew(2, 1, "", "a", ""), (9, 1))
    topic.progress["toolu_1"] = "<i>half</i>"
    topic.follow_state(TurnClosed(1), (9, 10), is_own=False)
    assert (topic.live, topic.progress) == (Live(2, 1, "", "a"), {"toolu_1": "<i>half</i>"})


@pytest.mark.parametrize("event", [MeterMoved(), TurnChanged(1)])
def test_what_says_nothing_of_the_text_leaves_it(event: Event) -> None:
    topic = streaming(9)
    topic.follow_state(event, (9, 10), is_own=False)
    assert topic.follow_text(grew("a"), (9, 1)) == "new"


# Snapshots, and what others know.


def test_text_that_a_snapshot_had_as_stored_is_old_and_that_of_the_next_round_is_not() -> None:
    """The database was ahead of what was published."""
    topic = streaming(9)
    topic.follow_text(grew("a"), (9, 1))
    topic.follow_snapshot(12, 1, has_text=False)
    assert topic.follow_text(grew("b"), (9, 2)) == "old"
    topic.follow_state(RoundChanged(1, 1), (9, 12), is_own=False)
    topic.follow_state(RoundOpened(1, 2), (12, 13), is_own=False)
    assert topic.follow_text(TextGrew(1, 2, "", "c", ""), (13, 1)) == "new"


@pytest.mark.parametrize(
    ("is_own", "read", "took"), [(True, 0, "new"), (False, 0, "new"), (False, 13, "gap")]
)
def test_a_round_that_opens_with_the_end_of_another_has_its_text(
    is_own: bool, read: int, took: str
) -> None:
    """A quick tool's round ends and the next one opens in one step, which a snapshot may have."""
    topic = streaming(9)
    topic.follow_text(grew("a"), (9, 1))
    if read:
        topic.follow_snapshot(read, 1, has_text=False)
    topic.follow_states((RoundChanged(1, 1), RoundOpened(1, 2)), (9, 13), is_own=is_own)
    assert topic.follow_text(grew("late"), (9, 2)) == "old"
    assert topic.follow_text(TextGrew(1, 2, "", "c", ""), (13, 1)) == took


def test_a_snapshot_of_the_text_on_its_way_is_followed_by_the_next_of_it() -> None:
    topic = streaming(9)
    topic.follow_text(grew("a"), (9, 1))
    topic.follow_snapshot(10, 1, has_text=True)
    assert topic.follow_text(grew("b"), (9, 2)) == "new"


def test_where_a_snapshot_has_no_turn_that_runs_all_text_until_then_is_old() -> None:
    topic = Topic()
    topic.follow_snapshot(12, 0, has_text=False)
    assert topic.follow_text(grew("late"), (9, 1)) == "old"
    assert topic.follow_text(grew("missed"), (13, 1)) == "gap"


@pytest.mark.parametrize(("is_own", "took"), [(True, "new"), (False, "gap")])
def test_a_round_that_opened_before_a_snapshot_has_its_text_only_where_its_turn_runs(
    is_own: bool, took: str
) -> None:
    """Elsewhere its text may be in the snapshot, as the last checkpoint had it."""
    topic = Topic()
    topic.follow_snapshot(12, 1, has_text=False)
    topic.follow_state(OPENED, (8, 9), is_own=is_own)
    assert topic.is_base(OPENED, (8, 9)) is is_own
    assert topic.follow_text(grew("a"), (9, 1)) == took


def test_the_answer_so_far_is_taken_over_by_who_comes_late() -> None:
    topic = Topic()
    assert topic.follow_text(grew("c"), (9, 5)) == "gap"
    assert topic.adopt_text(Live(1, 1, "", "abc"), (9, 5), {"toolu_1": "<i>far</i>"}, 9)
    assert topic.follow_text(grew("d"), (9, 6)) == "new"
    assert topic.live == Live(1, 1, "", "abcd")
    assert topic.progress == {"toolu_1": "<i>far</i>"}


def test_who_is_in_step_takes_over_nothing() -> None:
    topic = streaming(9)
    topic.follow_text(grew("a"), (9, 1))
    assert not topic.adopt_text(topic.live, (9, 1), {}, 9)
    assert not topic.adopt_text(Live(1, 1, "", "other"), (9, 0), {}, 9)
    assert not topic.adopt_text(None, (9, 0), {}, 9)
    assert topic.live == Live(1, 1, "", "a")
    topic.follow_state(TurnClosed(1), (9, 14), is_own=False)
    assert not topic.adopt_text(Live(1, 1, "", "late"), (9, 9), {"toolu_1": "far"}, 13)
    assert (topic.live, topic.progress) == (None, {})
