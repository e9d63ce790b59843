"""The timeline: turns, newest first, each with its calls and transformations."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.inspector.call_index import CallIndex, CallRow, ChangeRow

#: Calls of one page.
PAGE = 50


@dataclass(frozen=True, slots=True)
class Event:
    """A call or a transformation; one of the two is None."""

    call: CallRow | None = None
    change: ChangeRow | None = None

    @property
    def turn(self) -> int:
        return self.call.turn if self.call else (self.change.turn or 0) if self.change else 0


@dataclass(frozen=True, slots=True)
class Group:
    """The events of one turn, newest first; turn 0 has those outside any turn."""

    turn: int
    events: tuple[Event, ...]

    @property
    def calls(self) -> int:
        return sum(event.call is not None for event in self.events)

    @property
    def cost_micros(self) -> int:
        return sum((event.call.cost_micros or 0) for event in self.events if event.call)


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the shown events; `freed` and `used` count applied transformations."""

    calls: int
    tokens_in: int
    tokens_out: int
    cached_percent: int | None
    cost_micros: int
    changes: int
    freed: int
    summaries_micros: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """A page; `earlier` is the number of its oldest call when there are older ones."""

    groups: tuple[Group, ...]
    totals: Totals
    earlier: int | None
    #: Calls and transformations of other branches than the shown one.
    elsewhere: int
    is_all: bool = False
    is_broken: bool = False

    @property
    def most(self) -> int:
        """The largest request of the page, to scale the others by."""
        events = (event for group in self.groups for event in group.events)
        return max((event.call.tokens_in or 0 for event in events if event.call), default=0)


def build_timeline(
    found: CallIndex, *, before: int | None = None, is_all: bool = False
) -> Timeline:
    """Return the page of the newest calls, or of those before a call."""
    calls = [call for call in found.calls if is_all or call.is_on_path]
    changes = [change for change in found.changes if is_all or change.is_on_path]
    older = [call for call in calls if before is None or call.n < before]
    shown = older[-PAGE:]
    events = [Event(call=call) for call in shown]
    events += [Event(change=change) for change in _list_between(changes, calls, shown, is_all)]
    events.sort(key=_by_time if is_all else _by_path, reverse=True)
    elsewhere = sum(not call.is_on_path for call in found.calls)
    return Timeline(
        tuple(_group_by_turn(events)),
        sum_totals(calls, changes),
        shown[0].n if len(older) > PAGE else None,
        elsewhere + sum(not change.is_on_path for change in found.changes),
        is_all,
        found.is_broken,
    )


def sum_totals(calls: list[CallRow], changes: list[ChangeRow]) -> Totals:
    read = sum(call.cache_read or 0 for call in calls)
    tokens_in = sum(call.billed_in or 0 for call in calls)
    applied = [change for change in changes if change.outcome == "applied"]
    return Totals(
        len(calls),
        tokens_in,
        sum(call.written or 0 for call in calls),
        read * 100 // tokens_in if tokens_in else None,
        sum(call.cost_micros or 0 for call in calls),
        len(applied),
        sum(max(0, change.freed) for change in applied),
        sum(call.cost_micros or 0 for call in calls if call.purpose == "summary"),
    )


def _list_between(
    changes: list[ChangeRow], calls: list[CallRow], shown: list[CallRow], is_all: bool
) -> list[ChangeRow]:
    """Return the transformations of the page: those after the last call before it."""
    if not shown:
        return changes if not calls else []
    is_first, is_last = shown[0] is calls[0], shown[-1] is calls[-1]
    place = _by_time if is_all else _by_path
    low, high = place(Event(call=shown[0])), place(Event(call=shown[-1]))
    behind = next((c for c in calls if c.n > shown[-1].n), None)
    until = place(Event(call=behind)) if behind is not None else high
    return [
        change
        for change in changes
        if (is_first or place(Event(change=change)) > low)
        and (is_last or place(Event(change=change)) < until)
    ]


def _by_path(event: Event) -> tuple[float, ...]:
    """Sort key along the path: a call comes after the entry it was made at."""
    if event.call is not None:
        return event.call.tip, 1, event.call.n
    return (event.change.seq, 0, 0) if event.change else (0, 0, 0)


def _by_time(event: Event) -> tuple[float, ...]:
    if event.call is not None:
        return event.call.sent_at.timestamp(), 1, event.call.n
    return (event.change.created_at.timestamp(), 0, 0) if event.change else (0, 0, 0)


def _group_by_turn(events: list[Event]) -> list[Group]:
    found: list[list[Event]] = []
    for event in events:
        if found and found[-1][0].turn == event.turn:
            found[-1].append(event)
        else:
            found.append([event])
    return [Group(group[0].turn, tuple(group)) for group in found]
