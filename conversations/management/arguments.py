"""Arguments of commands: people, amounts and times; an invalid one exits with code 2."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from django.core.management import CommandError

from conversations.budgets import amounts
from conversations.budgets.units import parse_amount
from conversations.models import User


def find_person(name: str) -> User:
    user = User.objects.filter(username=name).first()
    if user is None:
        raise make_usage_error(f"there is no user {name!r}")
    return user


def find_person_or_none(name: str | None) -> User | None:
    return None if name is None else find_person(name)


def read_amount(text: str, unit: str) -> int:
    """Read an amount in a unit: dollars for money, else a whole number."""
    try:
        return parse_amount(text, unit)
    except amounts.Unreadable as error:
        raise make_usage_error(str(error)) from None


def read_moment(text: str, zone: ZoneInfo) -> datetime:
    """Read a date (its midnight) or a date with a time, in `zone` unless it names its own."""
    try:
        return amounts.parse_moment(text, zone)
    except amounts.Unreadable as error:
        raise make_usage_error(str(error)) from None


def read_text(file: Path) -> str:
    """Return a file's text with its line ends, in UTF-8 with or without a mark at its start."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            return lines.read()
    except OSError as error:
        raise make_usage_error(f"{file} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise make_usage_error(f"{file} cannot be read: it is not UTF-8") from error


def make_usage_error(text: str) -> CommandError:
    return CommandError(text, returncode=2)
