"""What a conversation shows, in short, and what a frame makes of what pages show.

A frame of another process may come behind the state in the database, or not at all. It goes out
only where it leads from what pages show for certain to what there is; where not, they are given all
of it anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conversations.events import (
    Event,
    QueueChanged,
    TitleChanged,
    TurnChanged,
    TurnClosed,
    TurnOpened,
)

#: Events that say how a turn stands.
WHOLE = (TurnOpened, TurnChanged, TurnClosed)


@dataclass(frozen=True, slots=True)
class Mark:
    """What a conversation shows, in short: equal marks show the same."""

    turns: tuple[object, ...]
    #: The turn that the shown path ends with, and the one before it; 0: none.
    leaf: int
    before: int
    title: str
    #: Messages that wait.
    waiting: int
    #: Whether a turn has not ended.
    is_live: bool = True

    def follows(self, shown: Mark) -> bool:
        """Say whether the path is that of `shown`, or one turn longer."""
        return shown.leaf in (self.leaf, self.before)


def leads_to(mark: Mark, shown: Mark | None, event: Event) -> bool:
    """Say whether pages that show so much have all that the event's frame needs.

    Of those that nobody knows of, each is about to be given a snapshot.
    """
    if shown is None:
        return True
    is_state = isinstance(event, TurnChanged | TurnClosed) and event.turn == mark.leaf
    return shown.leaf == mark.leaf or (mark.follows(shown) and not is_state)


def is_past(event: Event, mark: Mark) -> bool:
    """Say whether the turn went on since: a state would leave out what it said until its end.

    A page that has come meanwhile has it among those that have ended, so it cannot be added either.
    """
    if isinstance(event, TurnOpened):
        return not mark.is_live or event.turn != mark.leaf
    return isinstance(event, TurnChanged) and not mark.is_live


def shows(event: Event, mark: Mark) -> bool:
    """Say whether the frame shows the newest turn of the path, and so all of what is new."""
    return isinstance(event, WHOLE) and event.turn == mark.leaf


def after(event: Event, mark: Mark, shown: Mark) -> Mark:
    """Give what pages show behind the frame, which has the title or what waits, or has not."""
    has_queue = isinstance(event, TurnOpened | TurnClosed | QueueChanged)
    return replace(
        mark,
        title=mark.title if isinstance(event, TitleChanged) else shown.title,
        waiting=mark.waiting if has_queue else shown.waiting,
    )


def is_of_turns(mark: Mark, shown: Mark | None) -> bool:
    """Say whether nothing but the title and what waits is new."""
    return shown is not None and mark.turns == shown.turns
