"""Periods: windows in every time zone of the world, without a gap and without an overlap."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations.models.periods import ZoneUnknown, compute_bounds

ZONES = sorted(available_timezones() - {"localtime"})
PERIODS = ("hour", "day", "week", "month")
moments = st.integers(946_684_800, 2_840_140_800).map(lambda at: datetime.fromtimestamp(at, UTC))


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, datetime]:
    """Draw a zone and a moment near one at which its clocks change, where they do that year."""
    zone, year = draw(st.sampled_from(ZONES)), draw(st.integers(2000, 2040))
    days = [datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=day) for day in range(366)]
    offsets = [day.astimezone(ZoneInfo(zone)).utcoffset() for day in days]
    found = [day for day, a, b in zip(days, offsets, offsets[1:], strict=False) if a != b]
    day = draw(st.sampled_from(found or days))
    return zone, day + timedelta(seconds=draw(st.integers(-8 * 86_400, 8 * 86_400)))


places = changes() | st.tuples(st.sampled_from(ZONES), moments)
LONGEST = {"hour": 26, "day": 49, "week": 24 * 9, "month": 24 * 32}


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


@settings(max_examples=300)
@given(places, st.sampled_from(PERIODS))
def test_windows_hold_their_moment_and_leave_neither_gap_nor_overlap(
    place: tuple[str, datetime], period: str
) -> None:
    zone, now = place
    starts, ends = compute_bounds(period, zone, now)
    assert ends is not None
    assert starts <= now < ends
    assert starts.tzinfo is UTC is ends.tzinfo
    assert timedelta(0) < ends - starts <= timedelta(hours=LONGEST[period])
    assert compute_bounds(period, zone, starts) == (starts, ends)
    assert compute_bounds(period, zone, ends - timedelta(microseconds=1)) == (starts, ends)
    assert compute_bounds(period, zone, ends)[0] == ends
    before = compute_bounds(period, zone, starts - timedelta(microseconds=1))
    assert before[1] == starts


@given(places)
def test_a_day_begins_when_the_clocks_first_show_its_date(place: tuple[str, datetime]) -> None:
    zone, now = place
    there = ZoneInfo(zone)
    starts, _ = compute_bounds("day", zone, now)
    first, before = starts.astimezone(there), (starts - timedelta(seconds=1)).astimezone(there)
    assert first.date() > before.date()
    gap = first.utcoffset() != before.utcoffset()
    assert gap or (first.hour, first.minute, first.second) == (0, 0, 0)


@given(places)
def test_weeks_begin_on_monday_and_months_on_the_first(place: tuple[str, datetime]) -> None:
    zone, now = place
    there = ZoneInfo(zone)
    week, month = compute_bounds("week", zone, now)[0], compute_bounds("month", zone, now)[0]
    assert compute_bounds("day", zone, week)[0] == week
    assert compute_bounds("day", zone, month)[0] == month
    # A zone that skips a date has no Monday in that week.
    assert week.astimezone(there).weekday() in (0, 1)
    assert month.astimezone(there).day in (1, 2)


@pytest.mark.parametrize(
    ("period", "zone", "now", "starts", "ends"),
    [
        ("day", "UTC", "2026-11-21T23:59:59Z", "2026-11-21T00:00Z", "2026-11-22T00:00Z"),
        ("day", "UTC", "2026-12-31T20:00:00-05:00", "2027-01-01T00:00Z", "2027-01-02T00:00Z"),
        ("month", "UTC", "2028-02-29T12:00Z", "2028-02-01T00:00Z", "2028-03-01T00:00Z"),
        ("month", "UTC", "2027-01-01T00:30+01:00", "2026-12-01T00:00Z", "2027-01-01T00:00Z"),
        # 23 hours, then 25.
        ("day", "Europe/Vienna", "2026-03-29T12:00Z", "2026-03-28T23:00Z", "2026-03-29T22:00Z"),
        ("day", "Europe/Vienna", "2026-10-25T12:00Z", "2026-10-24T22:00Z", "2026-10-25T23:00Z"),
        ("day", "America/New_York", "2026-11-01T04:00Z", "2026-11-01T04:00Z", "2026-11-02T05:00Z"),
        # Its clocks go from 24:00 to 01:00, so this day begins at one o'clock.
        ("day", "Africa/Cairo", "2026-04-24T05:00Z", "2026-04-23T22:00Z", "2026-04-24T21:00Z"),
        # At one minute past midnight they went back, and the date with them.
        ("day", "America/St_Johns", "2010-11-07T03:00Z", "2010-11-07T02:30Z", "2010-11-08T03:30Z"),
        # The 30th of December was left out.
        ("day", "Pacific/Apia", "2011-12-30T12:00Z", "2011-12-30T10:00Z", "2011-12-31T10:00Z"),
        ("week", "Asia/Kathmandu", "2026-11-22T12:00Z", "2026-11-15T18:15Z", "2026-11-22T18:15Z"),
        ("month", "Asia/Tokyo", "2026-01-31T15:00Z", "2026-01-31T15:00Z", "2026-02-28T15:00Z"),
        ("hour", "Asia/Kolkata", "2026-11-21T10:29Z", "2026-11-21T09:30Z", "2026-11-21T10:30Z"),
        # The hour that is shown twice is one window.
        ("hour", "Europe/Vienna", "2026-10-25T01:30Z", "2026-10-25T00:00Z", "2026-10-25T02:00Z"),
        ("hour", "Europe/Vienna", "2026-03-29T01:10Z", "2026-03-29T01:00Z", "2026-03-29T02:00Z"),
        # Half an hour of summer: days of 23.5 and 24.5 hours, and an hour that takes 90 minutes.
        (
            "day",
            "Australia/Lord_Howe",
            "2026-04-04T15:00Z",
            "2026-04-04T13:00Z",
            "2026-04-05T13:30Z",
        ),
        (
            "day",
            "Australia/Lord_Howe",
            "2026-10-03T15:00Z",
            "2026-10-03T13:30Z",
            "2026-10-04T13:00Z",
        ),
        (
            "hour",
            "Australia/Lord_Howe",
            "2026-04-04T15:00Z",
            "2026-04-04T14:00Z",
            "2026-04-04T15:30Z",
        ),
        (
            "hour",
            "Australia/Lord_Howe",
            "2026-10-03T15:20Z",
            "2026-10-03T14:30Z",
            "2026-10-03T15:30Z",
        ),
        ("day", "Asia/Kathmandu", "2026-11-21T18:14Z", "2026-11-20T18:15Z", "2026-11-21T18:15Z"),
        ("hour", "Asia/Kathmandu", "2026-11-21T18:14Z", "2026-11-21T17:15Z", "2026-11-21T18:15Z"),
        # The week and the month that the date was left out of.
        ("week", "Pacific/Apia", "2011-12-31T12:00Z", "2011-12-26T10:00Z", "2012-01-01T10:00Z"),
        ("month", "Pacific/Apia", "2011-12-30T12:00Z", "2011-12-01T10:00Z", "2011-12-31T10:00Z"),
        # Month ends of every length, and the leap day itself.
        ("month", "Europe/Vienna", "2026-10-31T22:30Z", "2026-09-30T22:00Z", "2026-10-31T23:00Z"),
        ("month", "Europe/Vienna", "2026-03-31T21:59Z", "2026-02-28T23:00Z", "2026-03-31T22:00Z"),
        ("month", "UTC", "2100-02-28T23:59Z", "2100-02-01T00:00Z", "2100-03-01T00:00Z"),
        ("day", "UTC", "2028-02-29T12:00Z", "2028-02-29T00:00Z", "2028-03-01T00:00Z"),
        ("week", "UTC", "2028-02-29T12:00Z", "2028-02-28T00:00Z", "2028-03-06T00:00Z"),
    ],
)
def test_windows_where_clocks_change(
    period: str, zone: str, now: str, starts: str, ends: str
) -> None:
    assert compute_bounds(period, zone, at(now)) == (at(starts), at(ends))


@settings(max_examples=60)
@given(places, st.sampled_from(PERIODS), st.integers(2, 12))
def test_windows_tile_time(place: tuple[str, datetime], period: str, count: int) -> None:
    """Walking on leaves nothing out and counts nothing twice."""
    zone, now = place
    starts, ends = compute_bounds(period, zone, now)
    first, labels = starts, []
    for _ in range(count):
        assert ends is not None
        assert compute_bounds(period, zone, ends - timedelta(seconds=1)) == (starts, ends)
        labels.append(starts.astimezone(ZoneInfo(zone)).replace(tzinfo=None))
        (starts, ends), before = compute_bounds(period, zone, ends), ends
        assert starts == before
    assert labels == sorted(set(labels)) or period == "hour"
    assert starts > first


def test_a_lifetime_has_no_end() -> None:
    now = at("2026-11-21T00:00Z")
    assert compute_bounds("lifetime", "Asia/Tokyo", now) == compute_bounds("lifetime", "UTC", now)
    assert compute_bounds("lifetime", "UTC", now)[1] is None


@pytest.mark.parametrize(
    "name", ["", "Europe", "Europe/Nowhere", "../../etc/passwd", "\0", "x" * 9]
)
def test_a_zone_that_is_none_is_refused_by_name(name: str) -> None:
    with pytest.raises(ZoneUnknown, match="Europe/Vienna"):
        compute_bounds("day", name, at("2026-11-21T00:00Z"))
