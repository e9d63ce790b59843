"""The registry of live events: a class says what it shows, or there is no such class."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from conversations.agent import events
from conversations.agent.events import EVENTS, Event, Shows


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "EVENTS", dict(EVENTS))


def test_a_class_that_does_not_say_what_it_shows_is_refused() -> None:
    with pytest.raises(TypeError, match="Silent does not say what it shows"):

        class Silent(Event):
            pass

    with pytest.raises(TypeError, match="does not say"):

        class Inherits(events.QueueChanged):
            pass


@pytest.mark.parametrize(("region", "name"), [(Shows.STATUS, "turn"), (Shows.ROUND, "turn")])
def test_a_class_names_the_turn_that_it_shows(region: Shows, name: str) -> None:
    with pytest.raises(TypeError, match=f"shows a {name} and does not name it"):

        class Nameless(Event):
            shows = frozenset({region})


def test_a_class_that_says_it_is_known_by_its_name() -> None:
    @dataclass(frozen=True, slots=True)
    class DraftChanged(Event):
        shows = frozenset({Shows.QUEUE})

    assert events.EVENTS["DraftChanged"] is DraftChanged
    assert "DraftChanged" not in EVENTS


def test_only_what_is_no_row_yet_carries_content_of_its_own() -> None:
    own = {name for name, kind in EVENTS.items() if Shows.OWN in kind.shows}
    assert own == {"TextGrew", "ToolMoved", "ChatDeleted", "ServerLeaves"}
