"""What a process makes of what others tell it: in order, once, whole, or it asks."""

from __future__ import annotations

import pytest

from conversations.agent.events import (
    Event,
    MeterMoved,
    RoundChanged,
    RoundOpened,
    TextGrew,
    ToolMoved,
    TurnChanged,
    TurnClosed,
    TurnOpened,
)
from conversations.live.hub import Place, Topic
from conversations.transcript.marks import Mark
from conversations.transcript.shapes import Live

OPENED = RoundOpened(1, 1)


def grew(closed: str, tail: str = "") -> TextGrew:
    return TextGrew(1, 1, "", closed, tail)


def begun() -> Topic:
    """Make a topic whose pages have a turn that runs, and nothing that was told of it."""
    return Topic(open_turn=1, place=(1, 1, 0))


def told(*events: tuple[Event, Place | None]) -> tuple[Topic, list[str]]:
    topic = begun()
    return topic, [topic.take(event, place) for event, place in events]


def test_text_is_put_together_in_its_order() -> None:
    topic, took = told(
        (OPENED, (1, 1, 1)), (grew("a", "b"), (1, 1, 2)), (grew("b", "c"), (1, 1, 3))
    )
    assert took == ["new", "new", "new"]
    assert topic.live == Live(1, 1, "", "ab", "c")


def test_what_comes_twice_is_taken_once() -> None:
    topic, took = told((OPENED, (1, 1, 1)), (grew("a"), (1, 1, 2)), (grew("a"), (1, 1, 2)))
    assert took[-1] == "old"
    assert topic.live == Live(1, 1, "", "a")


def test_a_worker_that_lost_its_turn_is_not_heard() -> None:
    events: list[tuple[Event, Place]] = [(OPENED, (1, 2, 1)), (grew("stale"), (1, 1, 9))]
    topic, took = told(*events, (TurnClosed(1), (1, 1, 10)))
    assert took[1:] == ["old", "old"]
    assert topic.live == Live(1, 1)


@pytest.mark.parametrize("event", [grew("c"), ToolMoved("toolu_1", "far", None)])
def test_words_behind_a_gap_are_not_taken(event: Event) -> None:
    topic, took = told((OPENED, (1, 1, 1)), (event, (1, 1, 3)))
    assert took == ["new", "gap"]
    assert topic.is_behind
    assert topic.live == Live(1, 1)


@pytest.mark.parametrize("event", [RoundChanged(1, 1), TurnClosed(1), RoundOpened(1, 2)])
def test_what_says_a_state_closes_a_gap_and_says_that_others_were_missed(event: Event) -> None:
    topic, took = told((OPENED, (1, 1, 1)), (grew("c"), (1, 1, 3)), (event, (1, 1, 7)))
    assert took == ["new", "gap", "missed"]
    assert not topic.is_behind
    assert topic.take(grew("d"), (1, 1, 8)) == "new"


def test_a_turn_whose_end_was_not_told_was_missed_when_another_begins() -> None:
    _, took = told((OPENED, (1, 1, 1)), (TurnOpened(2), (2, 1, 1)))
    assert took == ["new", "missed"]
    _, took = told((OPENED, (1, 1, 1)), (TurnClosed(1), (1, 1, 2)), (TurnOpened(2), (2, 1, 1)))
    assert took == ["new", "new", "new"]


def test_what_follows_the_end_of_a_turn_does_not_open_it_again() -> None:
    """Its meter and the turn behind it are told by the same worker: no page needs a snapshot."""
    ended = [(OPENED, (1, 1, 1)), (TurnClosed(1), (1, 1, 2))]
    behind = [(TurnOpened(2), (1, 1, 3)), (MeterMoved(), (1, 1, 4))]
    _, took = told(*ended, *behind, (TurnOpened(2), (2, 1, 1)))
    assert took == ["new"] * 5


def test_a_turn_that_ended_has_no_tool_that_still_says_how_far_it_is() -> None:
    """Its worker died in the tool, so nobody else took the words back."""
    topic, _ = told((OPENED, (2, 1, 1)))
    topic.said["toolu_1"] = "<i>half</i>"
    topic.take(TurnClosed(2), None)
    assert (topic.live, topic.said) == (None, {})


def test_an_older_turn_that_is_shown_anew_leaves_the_answer_on_its_way() -> None:
    topic, _ = told((RoundOpened(2, 1), (2, 1, 1)), (grew("a"), (2, 1, 2)))
    topic.said["toolu_1"] = "<i>half</i>"
    assert topic.take(TurnClosed(1), None) == "new"
    assert (topic.live, topic.said) == (Live(2, 1, "", "a"), {"toolu_1": "<i>half</i>"})


def test_a_snapshot_for_all_leaves_open_what_they_show() -> None:
    """Another path may be shown now, and the former one again without a word of it."""
    topic = Topic(shown=Mark((), 2, 1, "", 0))
    topic.renew()
    assert topic.shown is None


@pytest.mark.parametrize(
    ("leaf", "before", "is_known"), [(2, 1, True), (3, 2, True), (4, 3, False), (3, 1, False)]
)
def test_a_path_goes_on_from_the_one_shown_or_is_another(
    leaf: int, before: int, is_known: bool
) -> None:
    assert Mark((), leaf, before, "", 0).follows(Mark((), 2, 1, "", 0)) is is_known


def test_who_hears_of_a_turn_in_its_middle_first_may_have_missed_its_beginning() -> None:
    """The first page was a snapshot, but maybe one from before the turn, whose hints were lost."""
    _, took = told((RoundChanged(1, 1), (1, 1, 30)), (MeterMoved(), (1, 1, 31)))
    assert took == ["missed", "new"]


def test_a_lease_begins_with_what_pages_need_or_they_are_given_all_of_its_turn() -> None:
    """Words of the worker that had it before, that there is such a turn too, may have been lost."""
    again: tuple[Event, Place] = TurnChanged(1), (1, 2, 1)
    for running, is_alone, took in ((0, True, "missed"), (1, False, "missed"), (1, True, "new")):
        assert Topic(open_turn=running).take(*again, is_alone=is_alone) == took
    events = [(TurnOpened(1), (1, 1, 1)), again, (OPENED, (1, 2, 2))]
    assert [Topic().take(*event) for event in events] == ["new", "missed", "missed"]
    topic = Topic()
    assert [topic.take(*event) for event in events] == ["new", "missed", "new"]


def test_what_nobodys_turn_tells_is_always_taken() -> None:
    _, took = told((MeterMoved(), None), (OPENED, (1, 1, 1)), (MeterMoved(), None))
    assert took == ["new"] * 3


def test_the_answer_so_far_is_taken_over_by_who_comes_late() -> None:
    topic, took = told((grew("c"), (1, 1, 5)))
    assert took == ["gap"]
    assert topic.adopt((1, 1, 5), Live(1, 1, "", "abc"), {"toolu_1": "<i>far</i>"})
    assert topic.take(grew("d"), (1, 1, 6)) == "new"
    assert topic.live == Live(1, 1, "", "abcd")
    assert topic.said == {"toolu_1": "<i>far</i>"}


def test_who_is_in_step_takes_over_nothing() -> None:
    topic, _ = told((OPENED, (1, 1, 1)), (grew("a"), (1, 1, 2)))
    for place in ((1, 1, 2), (1, 1, 1)):
        assert not topic.adopt(place, Live(1, 1, "", "other"), {})
    assert topic.live == Live(1, 1, "", "a")


def test_a_later_turn_is_heard_from_its_beginning() -> None:
    topic, took = told((TurnClosed(1), (1, 1, 40)), (TurnOpened(2), (2, 1, 1)))
    assert took == ["missed", "new"]
    assert topic.place == (2, 1, 1)


def test_a_worker_whose_turn_others_ended_is_not_heard_any_more() -> None:
    topic, took = told((OPENED, (1, 1, 1)), (TurnClosed(1), None), (grew("late"), (1, 1, 2)))
    assert took == ["new", "new", "old"]
    assert topic.live is None
    assert topic.take(TurnChanged(1), (1, 2, 1)) == "missed"


def test_words_of_a_turn_whose_end_was_shown_are_of_the_past_and_those_of_the_next_are_not() -> (
    None
):
    topic = begun()
    topic.past(Mark((), 1, 0, "", 0, is_live=True))
    topic.past(None)
    assert topic.take(OPENED, (1, 1, 1)) == "new"
    topic.past(Mark((), 1, 0, "", 0, is_live=False))
    late = [(grew("a"), (1, 1, 2)), (ToolMoved("toolu_1", "far", None), (1, 1, 3))]
    assert [topic.take(event, place) for event, place in late] == ["old", "old"]
    assert topic.take(TurnClosed(1), (1, 1, 4)) == "new"
    assert topic.take(grew("late"), (1, 1, 9)) == "old"
    assert topic.live is None
    assert topic.take(TurnOpened(2), (2, 1, 1)) == "new"
    assert topic.take(RoundOpened(2, 1), (2, 1, 2)) == "new"
    assert topic.take(grew("b"), (2, 1, 3)) == "new"
    assert topic.live == Live(2, 1, "", "b", "")
