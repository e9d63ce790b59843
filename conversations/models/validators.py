"""Validators of budget columns, for typed values."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from conversations.models.periods import ZoneUnknown, load_zone


def demand_zone(name: str) -> None:
    try:
        load_zone(name)
    except ZoneUnknown as error:
        raise ValidationError(str(error)) from error


def demand_percents(text: str) -> None:
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if not all(part.isdecimal() and 1 <= int(part) <= 100 for part in parts):
        raise ValidationError(_("Write whole percents from 1 to 100, for example 50,80,95."))
