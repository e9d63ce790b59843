"""What the API's documentation says of a field and of a parameter; and parameters that are read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.http import QueryDict

from conversations.budgets.usage.days import Span
from conversations.web.api.problems import ApiRefused
from conversations.web.api.rows import MOST_ROWS, USUAL_ROWS

#: Years that both databases and the sums of days take.
_YEARS = range(1970, 9000)
_DAY = {
    "type": "string",
    "format": "date",
    "pattern": "^(19[7-9][0-9]|[2-8][0-9]{3})-[0-9]{2}-[0-9]{2}$",
}


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    #: string, integer, boolean, moment, uuid
    kind: str
    says: str
    may_be_null: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        formats = {"moment": "date-time", "uuid": "uuid"}
        kind = "string" if self.kind in formats else self.kind
        found: dict[str, Any] = {"type": [kind, "null"] if self.may_be_null else kind}
        if self.kind in formats:
            found["format"] = formats[self.kind]
        return found | {"description": self.says}


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    says: str
    choices: tuple[str, ...] = ()
    is_day: bool = False
    is_list: bool = False
    is_needed: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        if self.is_day:
            return _DAY
        if self.is_list:
            return {"type": "array", "minItems": 1, "items": {"enum": list(self.choices)}}
        if self.choices:
            return {"type": "string", "enum": list(self.choices)}
        return {"type": "string", "minLength": 1, "maxLength": 150}


CURSOR = Parameter("cursor", "Where to go on: `next` of the page before.")
FROM = Parameter("from", "The first day (UTC).", is_day=True)
TO = Parameter("to", "The last day (UTC).", is_day=True)


@dataclass(frozen=True, slots=True)
class Asked:
    """The parameters of a request, each checked against what the documentation says of it."""

    values: dict[str, str]

    def read(self, name: str) -> str:
        return self.values.get(name, "")

    def read_list(self, name: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(filter(None, self.read(name).split(","))))

    def read_day(self, name: str) -> date | None:
        text = self.read(name)
        return date.fromisoformat(text) if text else None

    def read_bounds(self) -> tuple[datetime | None, datetime | None]:
        """Return the moment at which `from` begins and that at which `to` is over; None: none."""
        first, last = self.read_day("from"), self.read_day("to")
        return (
            Span(first, first).starts_at if first else None,
            Span(last, last).ends_at if last else None,
        )


def check_parameters(query: QueryDict, known: tuple[Parameter, ...]) -> Asked:
    """Return the values of a query; raises ApiRefused for one that the documentation excludes."""
    places = {parameter.name: parameter for parameter in known}
    for name, values in query.lists():
        if name not in places:
            raise ApiRefused(400, f"There is no parameter {name[:50]!r} here.")
        if len(values) > 1:
            raise ApiRefused(400, f"The parameter {name} stands here more than once.")
        _check_value(places[name], values[0])
    missing = [name for name, each in places.items() if each.is_needed and name not in query]
    if missing:
        raise ApiRefused(400, f"The parameter {missing[0]} is needed.")
    asked = Asked(query.dict())  # type: ignore[arg-type]
    first, last = (asked.read_day(each) if each in places else None for each in ("from", "to"))
    if first and last and first > last:
        raise ApiRefused(400, "The first day comes after the last.")
    return asked


def _check_value(parameter: Parameter, value: str) -> None:
    name = parameter.name
    if not value or "\0" in value or len(value) > 150:
        raise ApiRefused(400, f"The parameter {name} needs 1 to 150 characters.")
    if parameter.is_day:
        if not (_is_day(value) and int(value[:4]) in _YEARS):
            raise ApiRefused(400, f"Write {name} as year-month-day, for example 2026-11-01.")
    elif parameter.choices:
        found = value.split(",") if parameter.is_list else [value]
        if not set(found) <= {*parameter.choices}:
            raise ApiRefused(400, f"Of {name} there are: {', '.join(parameter.choices)}.")


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def read_count(text: str) -> int:
    """Return how many rows a page has."""
    if not text:
        return USUAL_ROWS
    count = int(text) if text.isascii() and text.isdecimal() and len(text) < 5 else 0
    if not 1 <= count <= MOST_ROWS:
        raise ApiRefused(400, f"The parameter limit is a number from 1 to {MOST_ROWS}.")
    return count
