"""What commands are told by name: people, amounts, moments; what cannot be meant is exit code 2."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal, InvalidOperation
from zoneinfo import ZoneInfo

from django.core.management import CommandError
from django.utils.dateparse import parse_date, parse_datetime

from conversations.models import User

MICROS = 1_000_000


def person(name: str) -> User:
    user = User.objects.filter(username=name).first()
    if user is None:
        raise wrong(f"there is no user {name!r}")
    return user


def person_or_none(name: str | None) -> User | None:
    return None if name is None else person(name)


def micros(text: str) -> int:
    """Read dollars, such as 12.50 or $0.000001, as micro-dollars."""
    try:
        amount = Decimal(text.strip().removeprefix("$").replace("_", "")) * MICROS
    except InvalidOperation:
        raise wrong(f"{text!r} is no amount of dollars") from None
    if not amount.is_finite() or amount != int(amount):
        raise wrong(f"{text!r} is no amount that micro-dollars can say")
    return int(amount)


def amount(text: str, unit: str) -> int:
    """Read an amount in a unit: dollars of money, whole numbers of all else."""
    if unit == "money":
        return micros(text)
    try:
        return int(text)
    except ValueError:
        raise wrong(f"{text!r} is no whole number of {unit}") from None


def moment(text: str, zone: ZoneInfo) -> datetime:
    """Read a date (its beginning) or a date with a time, in a zone unless it names its own."""
    try:
        day = parse_date(text)
        found = datetime(day.year, day.month, day.day, tzinfo=zone) if day else parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise wrong(f"{text!r} is no date such as 2027-01-31 or 2027-01-31T12:00")
    return found if found.tzinfo else found.replace(tzinfo=zone)


def wrong(text: str) -> CommandError:
    return CommandError(text, returncode=2)
