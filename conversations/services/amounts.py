"""Amounts and moments as people write them, in commands, forms and files alike."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal, InvalidOperation
from zoneinfo import ZoneInfo

from django.utils.dateparse import parse_date, parse_datetime

MICROS = 1_000_000
#: Longer is no figure that anybody means, and slow to compute with.
MOST_DIGITS, MOST_EXPONENT = 40, 1_000


class Unreadable(ValueError):
    """A text is no amount or moment; the text of this error says what it should be."""

    code = "unreadable"


def micros(text: str) -> int:
    """Read dollars, such as 12.50 or $0.000001, as micro-dollars."""
    try:
        number = Decimal(_short(text).removeprefix("$").replace("_", "").replace(",", ""))
    except InvalidOperation:
        raise Unreadable(f"{text!r} is no amount of dollars") from None
    # A short text may have an exponent that makes an endless number.
    is_sane = number.is_finite() and abs(number.adjusted()) <= MOST_EXPONENT
    if not is_sane or number * MICROS != int(number * MICROS):
        raise Unreadable(f"{text!r} is no amount that micro-dollars can say")
    return int(number * MICROS)


def amount(text: str, unit: str) -> int:
    """Read an amount in a unit: dollars of money, whole numbers of all else."""
    if unit == "money":
        return micros(text)
    try:
        return int(_short(text).replace(",", "").replace("_", ""))
    except ValueError:
        raise Unreadable(f"{text!r} is no whole number of {unit}") from None


def _short(text: str) -> str:
    found = text.strip()
    if len(found) > MOST_DIGITS:
        raise Unreadable(f"{found[:MOST_DIGITS]!r}… is no amount: it is too long")
    return found


def moment(text: str, zone: ZoneInfo) -> datetime:
    """Read a date (its beginning) or a date with a time, in a zone unless it names its own."""
    try:
        day = parse_date(text)
        found = datetime(day.year, day.month, day.day, tzinfo=zone) if day else parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise Unreadable(f"{text!r} is no date such as 2027-01-31 or 2027-01-31T12:00")
    return found if found.tzinfo else found.replace(tzinfo=zone)
