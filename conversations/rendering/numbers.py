"""Numbers as people read them, in the active language: money, tokens, durations.

Templates use them as filters. What a program reads is written elsewhere.
"""

from __future__ import annotations

from django.utils.formats import number_format
from django.utils.translation import gettext as _


def write_number(number: float | str) -> str:
    """Format a number with the signs of the active language: 1,234.5 is 1.234,5 in German."""
    return number_format(number, force_grouping=True)


def dollars(micros: int | None) -> str:
    """Format micro-dollars with as many digits as matter."""
    if micros is None:
        return ""
    sign, size = ("-" if micros < 0 else ""), abs(micros)
    if 0 < size < 50:
        return f"{sign}<${write_number('0.0001')}"
    places = 2 if size >= 1_000_000 or size == 0 else 3 if size >= 10_000 else 4
    unit = 10 ** (6 - places)
    whole, rest = divmod((size + unit // 2) // unit, 10**places)
    return f"{sign}${write_number(f'{whole}.{rest:0{places}d}')}"


def cents(micros: int) -> str:
    """Format an estimated price: whole cents."""
    if micros < 10_000:
        return f"<${write_number('0.01')}"
    return f"${write_number(f'{(micros + 5_000) // 10_000 / 100:.2f}')}"


def budget_name(period: str, model: str = "") -> str:
    """Return the name of the budget of a period, of all models or the one that is named."""
    names = {
        "minute": _("the limit a minute"),
        "hour": _("this hour's budget"),
        "day": _("today's budget"),
        "week": _("this week's budget"),
        "month": _("this month's budget"),
    }
    return _add_model(names.get(period, _("the budget")), model)


def of_budget(period: str, model: str = "") -> str:
    """Return the name of a budget as it follows a part: "of today's budget".

    Other languages than English join the two words or change the second.
    """
    names = {
        "minute": _("of the limit a minute"),
        "hour": _("of this hour's budget"),
        "day": _("of today's budget"),
        "week": _("of this week's budget"),
        "month": _("of this month's budget"),
    }
    return _add_model(names.get(period, _("of the budget")), model)


def _add_model(budget: str, model: str) -> str:
    return _("%(budget)s for %(model)s") % {"budget": budget, "model": model} if model else budget


def budget_source(source: str) -> str:
    """Say in the active language where a budget or cap comes from."""
    for start, words in (
        ("from group ", _("from group %(group)s")),
        ("shared by group ", _("shared by group %(group)s")),
    ):
        if source.startswith(start):
            return words % {"group": source.removeprefix(start)}
    names = {
        "set by yourself": _("set by yourself"),
        "set by this person": _("set by this person"),
        "set for you": _("set for you"),
        "set for this person": _("set for this person"),
        "shared by everybody": _("shared by everybody"),
        "the same for everybody": _("the same for everybody"),
        "the site": _("the same for everybody"),
    }
    return names.get(source, source)


def tokens(count: int | None) -> str:
    """Format a token count briefly: 96301 is 96k."""
    if count is None:
        return ""
    if count < 1_000:
        return str(count)
    if count < 9_950:
        return write_number(f"{(count + 50) // 100 / 10:g}") + "k"
    if count < 999_500:
        return f"{(count + 500) // 1_000}k"
    if count < 999_995_000:
        return write_number(f"{(count + 5_000) // 10_000 / 100:g}") + "M"
    return write_number(f"{(count + 5_000_000) // 10_000_000 / 100:g}") + "B"


def duration(milliseconds: int | None) -> str:
    """Format a duration in the unit that fits it."""
    if milliseconds is None:
        return ""
    if milliseconds < 1_000:
        return _("%(number)d ms") % {"number": milliseconds}
    if milliseconds < 60_000:
        return _("%(number)s s") % {"number": write_number(f"{milliseconds / 1000:.1f}")}
    minutes, seconds = divmod(milliseconds // 1000, 60)
    return _("%(minutes)d min %(seconds)d s") % {"minutes": minutes, "seconds": seconds}


def seconds(count: int) -> str:
    """Format whole seconds, or minutes from two minutes on."""
    if count < 120 or count % 60:
        return _("%(number)d s") % {"number": count}
    return _("%(number)d min") % {"number": count // 60}
