"""Amounts and moments as people write them, for commands, forms and CSV files."""

from __future__ import annotations

import re
from datetime import MAXYEAR, MINYEAR, datetime
from decimal import Decimal, InvalidOperation
from zoneinfo import ZoneInfo

from django.utils.dateparse import parse_date, parse_datetime
from django.utils.translation import gettext as _

MICROS = 1_000_000
#: Longer numbers are always mistakes, and slow to compute with.
MOST_DIGITS, MOST_EXPONENT = 40, 1_000
#: Commas between thousands. 12,50 and 0,125 are refused, because in some countries they mean 12.50
#: and 0.125.
_GROUPED = re.compile(r"[$+-]*[1-9]\d{0,2}(,\d{3})+(\.\d*)?")


class Unreadable(ValueError):
    """A text that is no amount or moment; the message says what is expected."""

    code = "unreadable"


def parse_dollars(text: str) -> int:
    """Read dollars, such as 12.50 or $0.000001, as micro-dollars; raises Unreadable."""
    try:
        number = Decimal(_strip_grouping(text).removeprefix("$"))
    except InvalidOperation:
        raise Unreadable(_("%(text)s is no amount of dollars") % {"text": repr(text)}) from None
    # A short text may have an exponent that makes a huge number.
    is_sane = number.is_finite() and abs(number.adjusted()) <= MOST_EXPONENT
    if not is_sane or number * MICROS != int(number * MICROS):
        raise Unreadable(
            _("%(text)s is no amount that micro-dollars can say") % {"text": repr(text)}
        )
    return int(number * MICROS)


def parse_count(text: str, noun: str) -> int:
    """Read a whole number of `noun`s; raises Unreadable."""
    try:
        return int(_strip_grouping(text))
    except ValueError:
        raise Unreadable(
            _("%(text)s is no whole number of %(noun)s") % {"text": repr(text), "noun": _(noun)}
        ) from None


def format_decimal(number: int, digits: int) -> str:
    """Write a number stored with `digits` decimal digits: 12.50 with 6, 500000 with 0."""
    if not digits:
        return str(number)
    whole, rest = divmod(abs(number), 10**digits)
    decimals = f"{rest:0{digits}d}".rstrip("0").ljust(2, "0")
    return f"{'-' if number < 0 else ''}{whole}.{decimals}"


def _strip_grouping(text: str) -> str:
    """Return the number without the characters that group its digits; raises Unreadable."""
    found = text.strip()
    if len(found) > MOST_DIGITS:
        raise Unreadable(
            _("%(text)s… is no amount: it is too long") % {"text": repr(found[:MOST_DIGITS])}
        )
    if "," in found and not _GROUPED.fullmatch(found):
        raise Unreadable(
            _("%(text)s is no amount: commas stand between thousands alone") % {"text": repr(found)}
        )
    return found.replace(",", "").replace("_", "")


def parse_moment(text: str, zone: ZoneInfo) -> datetime:
    """Read a date (its midnight) or a date and time, in `zone` unless the text names a zone.

    Raises Unreadable, also for a moment that not every zone can write.
    """
    try:
        day = parse_date(text)
        found = datetime(day.year, day.month, day.day, tzinfo=zone) if day else parse_datetime(text)
    except ValueError:
        found = None
    if found is None or _is_at_an_end(found):
        raise _refuse_moment(text)
    return found if found.tzinfo else found.replace(tzinfo=zone)


def demand_year(moment: datetime) -> None:
    """Raise Unreadable in the first and the last year: not every zone can write its moments."""
    if _is_at_an_end(moment):
        raise _refuse_moment(f"{moment.date()}")


def _is_at_an_end(moment: datetime) -> bool:
    return not MINYEAR < moment.year < MAXYEAR


def _refuse_moment(text: str) -> Unreadable:
    return Unreadable(
        _("%(text)s is no date such as 2027-01-31 or 2027-01-31T12:00") % {"text": repr(text)}
    )
