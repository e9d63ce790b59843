"""Recorded sentences in the reader's language.

Records keep what the server said in English. A sentence is recognised by the template that it was
made from, which is its key in the catalogues, too; its values are read from the text. What no
template made, such as the words of the API, stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache

from django import template
from django.utils.formats import date_format
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

import conversations.claude.errors  # noqa: F401 - pages may show what workers alone say
from conversations.context.steps.kinds import KINDS
from conversations.context.translation import RECORDED
from conversations.models.catalogue import ModelPrice
from conversations.rendering.numbers import budget_source, seconds, write_number

register = template.Library()

_PLACE = re.compile(r"%\((\w+)\)s")
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
#: Templates of records that older versions made, and those that say the same today.
EARLIER = {
    "Parts of this conversation could not be sent to the model again and were left out."
    " You can still read them here.": "Parts of this chat could not be sent to the model again and"
    " were left out. You can still read them here.",
    "What a tool returned is missing. The model is told so, and the conversation goes on.": (
        "What a tool returned is missing. The model is told so, and the chat goes on."
    ),
    "Something earlier in this conversation was put in order for the model. Nothing was left"
    " out.": "Something earlier in this chat was put in order for the model. Nothing was left out.",
    "The API does not accept what it signed earlier in this conversation.": (
        "The API does not accept what it signed earlier in this chat."
    ),
    "The conversation is about %(count)s tokens and %(model)s takes at most %(most)s here.": (
        "The chat is about %(count)s tokens and %(model)s takes at most %(most)s here."
    ),
    "The conversation went on before it was asked for.": (
        "The chat went on before it was asked for."
    ),
    "The conversation is gone.": "The chat is gone.",
}
#: What ends a sentence or a part of one, and the signs between them.
_ENDS, _BETWEEN = (". ", "; ", ": "), " ;:,"
#: Characters of a value at most.
_MOST = 400


@register.filter
def translated(text: str) -> str:
    """Return a recorded text in the active language."""
    if _is_english():
        return text
    said, at = [], 0
    while at < len(text):
        if text[at] in _BETWEEN:
            said.append(text[at])
            at += 1
            continue
        words, at = _translate_next(text, at)
        said.append(words)
    return "".join(said)


def _is_english() -> bool:
    return (get_language() or "en").startswith("en")


def _translate_next(text: str, at: int) -> tuple[str, int]:
    """Return the sentence that begins at a place in the active language, and where it ends."""
    part = text.find("; ", at)
    for literals, names, words in _split_templates(len(RECORDED)):
        # A value at the end goes on to the end of the text, or of its first part.
        for whole in (text, text[:part] if part >= 0 and not literals[-1] else ""):
            found = _read_values(whole, at, literals)
            if found is None:
                continue
            values, end = found
            shown = {name: _show(name, value) for name, value in zip(names, values, strict=True)}
            if all(value is not None for value in shown.values()):
                return _(words) % shown if names else _(words), end
    ends = [found + 2 for found in (text.find(end, at) for end in _ENDS) if found >= 0]
    end = min(ends, default=len(text))
    return text[at:end], end


def _read_values(text: str, at: int, literals: tuple[str, ...]) -> tuple[list[str], int] | None:
    """Return the values between the literals and the end of the last; None where they differ."""
    first, *others = literals
    if not text.startswith(first, at):
        return None
    values, end = [], at + len(first)
    for number, literal in enumerate(others, 1):
        found = _find_literal(text, literal, end, is_last=number == len(others))
        if found < 0:
            return None
        values.append(text[end:found])
        end = found + len(literal)
    is_first = first or not any(sign in values[0] for sign in _ENDS)
    return (values, end) if is_first and _is_end(text, end) else None


def _find_literal(text: str, literal: str, start: int, *, is_last: bool) -> int:
    """Return where a literal follows a value, -1 if nowhere; the last one ends its sentence."""
    if is_last and not literal:
        return len(text)
    most = start + _MOST + len(literal)
    found = text.find(literal, start, most)
    while is_last and found >= 0 and not _is_end(text, found + len(literal)):
        found = text.find(literal, found + 1, most)
    return found


def _is_end(text: str, at: int) -> bool:
    return at == len(text) or text[at] in _BETWEEN


@lru_cache(maxsize=1)
def _split_templates(_count: int) -> list[tuple[tuple[str, ...], tuple[str, ...], str]]:
    """Return the literals and the names of places of each template, the longest words first."""
    found = []
    for said, words in [*((one, one) for one in RECORDED), *EARLIER.items()]:
        parts = _PLACE.split(said)
        found.append((tuple(parts[::2]), tuple(parts[1::2]), words))
    return sorted(found, key=lambda one: (-sum(map(len, one[0])), one[2]))


def _show(name: str, value: str) -> str | None:
    """Return a value in the active language; None if the place cannot have it."""
    show = SHOWN.get(name)
    return show(value) if show else value


def _show_number(value: str) -> str | None:
    return _show_amount(value) if _NUMBER.fullmatch(value) else None


def _show_amount(value: str) -> str:
    """Return an amount of money, tokens, turns or requests."""
    number, _space, unit = value.partition(" ")
    shown = _NUMBER.sub(lambda found: write_number(found[0].replace(",", "")), number)
    match unit:
        case "tokens":
            return _("%(number)s tokens") % {"number": shown}
        case "turn" | "turns":
            count = 1 if unit == "turn" else 2
            return ngettext("%(number)s turn", "%(number)s turns", count) % {"number": shown}
        case "request" | "requests":
            count = 1 if unit == "request" else 2
            return ngettext("%(number)s request", "%(number)s requests", count) % {"number": shown}
        case _:
            return f"{shown} {unit}".strip()


def _show_limit(value: str) -> str:
    shown = translated(value)
    return _show_amount(value) if shown == value else shown


def _show_whose(value: str) -> str:
    """Return where a budget comes from, after the name of its model if it has one."""
    shown = budget_source(value)
    model, comma, source = value.partition(", ")
    return shown if shown != value or not comma else f"{model}, {budget_source(source)}"


def _show_members(value: str) -> str:
    """Return of whom a rule is: of everybody, or of the members of a group."""
    return _("everybody") if value == "everybody" else value


def _show_budget(value: str) -> str | None:
    names = {
        "The hourly budget": _("The hourly budget"),
        "The daily budget": _("The daily budget"),
        "The weekly budget": _("The weekly budget"),
        "The monthly budget": _("The monthly budget"),
        "The lifetime budget": _("The lifetime budget"),
    }
    return names.get(value)


def show_moment(value: str) -> str:
    """Return a moment such as "1 December 2026 at 00:00 (Europe/Vienna)"."""
    if _is_english():
        return value
    moment, _space, zone = value.rpartition(" ")
    try:
        at = datetime.strptime(moment, "%d %B %Y at %H:%M")  # noqa: DTZ007 - its zone is named
    except ValueError:
        return value
    return f"{date_format(at, 'DATETIME_FORMAT')} {zone}"


def _show_kind(value: str) -> str:
    kinds = {kind.value.replace("_", " "): str(kind.label) for kind in ModelPrice.Kind}
    return kinds.get(value, value)


def _show_reason(value: str) -> str:
    return _("no stop reason") if value == "no stop reason" else value


def _show_step(value: str) -> str:
    return _(KINDS[value].label) if value in KINDS else value


def _show_wait(value: str) -> str:
    number = value.partition(" ")[0]
    return seconds(int(number)) if number.isdecimal() else value


#: What shows a value, by the name of its place.
SHOWN: dict[str, Callable[[str], str | None]] = {
    "budget": _show_budget,
    "limit": _show_amount,
    "used": _show_amount,
    "amount": _show_amount,
    "before": _show_limit,
    "after": _show_limit,
    "whose": _show_whose,
    "members": _show_members,
    "date": show_moment,
    "kind": _show_kind,
    "wait": _show_wait,
    "number": _show_number,
    "count": _show_number,
    "least": _show_number,
    "most": _show_number,
    "reason": _show_reason,
    "step": _show_step,
    "part": translated,
    "what": translated,
    "why": translated,
}
