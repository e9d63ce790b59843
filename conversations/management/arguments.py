"""What commands are told by name: people, amounts, moments; what cannot be meant is exit code 2."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from django.core.management import CommandError

from conversations.budgets import amounts
from conversations.models import User


def person(name: str) -> User:
    user = User.objects.filter(username=name).first()
    if user is None:
        raise wrong(f"there is no user {name!r}")
    return user


def person_or_none(name: str | None) -> User | None:
    return None if name is None else person(name)


def micros(text: str) -> int:
    return amount(text, "money")


def amount(text: str, unit: str) -> int:
    """Read an amount in a unit: dollars of money, whole numbers of all else."""
    try:
        return amounts.amount(text, unit)
    except amounts.Unreadable as error:
        raise wrong(str(error)) from None


def moment(text: str, zone: ZoneInfo) -> datetime:
    """Read a date (its beginning) or a date with a time, in a zone unless it names its own."""
    try:
        return amounts.moment(text, zone)
    except amounts.Unreadable as error:
        raise wrong(str(error)) from None


def wrong(text: str) -> CommandError:
    return CommandError(text, returncode=2)
