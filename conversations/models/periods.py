"""Calendar periods: the minute, hour, day, week or month that contains a moment, in a time zone.

A window starts when the zone's clocks first show its start, and ends where the next one starts. So
windows never overlap and leave no gap, however clocks are changed: a day has 23, 24 or 25 hours, an
hour that is shown twice is one window, a skipped hour has none. A week starts on Monday. A lifetime
has one window, without an end. A minute is one of UTC, whatever the zone. Moments are in UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TypeAlias
from zoneinfo import ZoneInfo

#: Start and end of a window; None: it has no end.
Bounds: TypeAlias = tuple[datetime, datetime | None]

_LIFETIME = datetime(2000, 1, 1, tzinfo=UTC)
_HOUR, _DAY, _SECOND = timedelta(hours=1), timedelta(days=1), timedelta(seconds=1)
_MINUTE = timedelta(minutes=1)


class ZoneUnknown(ValueError):
    """There is no time zone of that name."""

    code = "zone_unknown"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"There is no time zone {name!r}: use an IANA name such as UTC or Europe/Vienna."
        )


@lru_cache(256)
def load_zone(name: str) -> ZoneInfo:
    """Return a time zone by its IANA name; raises ZoneUnknown."""
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:  # no such zone, a path, a folder
        raise ZoneUnknown(name) from error


def format_moment(at: datetime, name: str) -> str:
    """Write a moment in a time zone, such as "1 December 2026 at 00:00 (Europe/Vienna)"."""
    there = at.astimezone(load_zone(name))
    return f"{there.day} {there:%B %Y} at {there:%H:%M} ({name})"


def compute_bounds(period: str, zone: str, now: datetime) -> Bounds:
    """Return the window of `period` that contains `now`; raises ZoneUnknown and KeyError."""
    if period == "lifetime":
        return _LIFETIME, None
    if period == "minute":
        begins = now.astimezone(UTC).replace(second=0, microsecond=0)
        return begins, begins + _MINUTE
    there, (floor, move) = load_zone(zone), _STEPS[period]
    shown = floor(now.astimezone(there).replace(tzinfo=None))
    # Clocks that go back across a boundary show the previous window again: the boundary counts.
    while now < _find_beginning(shown, there):
        shown = move(shown, -1)
    while now >= _find_beginning(move(shown, 1), there):
        shown = move(shown, 1)
    return _find_beginning(shown, there), _find_beginning(move(shown, 1), there)


def _find_beginning(shown: datetime, zone: ZoneInfo) -> datetime:
    """Return the first moment at which the zone's clocks show this time or a later one."""
    first = shown.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if first.astimezone(zone).replace(tzinfo=None) == shown:
        return first
    # The clocks skip this time, so the window starts at the jump.
    late, early = first, shown.replace(tzinfo=zone, fold=1).astimezone(UTC)
    while late - early > _SECOND:
        middle = (early + (late - early) / 2).replace(microsecond=0)
        if middle.astimezone(zone).replace(tzinfo=None) < shown:
            early = middle
        else:
            late = middle
    return late


def _add_months(shown: datetime, count: int) -> datetime:
    months = shown.year * 12 + shown.month - 1 + count
    return shown.replace(year=months // 12, month=months % 12 + 1)


def _floor_day(shown: datetime) -> datetime:
    return shown.replace(hour=0, minute=0, second=0, microsecond=0)


_Floor: TypeAlias = Callable[[datetime], datetime]
_Move: TypeAlias = Callable[[datetime, int], datetime]
_STEPS: dict[str, tuple[_Floor, _Move]] = {
    "hour": (
        lambda at: at.replace(minute=0, second=0, microsecond=0),
        lambda at, count: at + count * _HOUR,
    ),
    "day": (_floor_day, lambda at, count: at + count * _DAY),
    "week": (
        lambda at: _floor_day(at) - at.weekday() * _DAY,
        lambda at, count: at + count * 7 * _DAY,
    ),
    "month": (lambda at: _floor_day(at).replace(day=1), _add_months),
}
