"""Numbers as people read them, and the one door by which made HTML enters a page.

No template says `safe`: HTML goes through `prose`, which lets our own rendering pass as it is and
cleans anything else again (text that crossed the channel layer is a plain string).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeData, SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from conversations.conf import conf
from conversations.context import images, media
from conversations.rendering import clean
from conversations.rendering.visible import visible as _visible

register = template.Library()

_TOOL_ICONS = {
    "list_files": "folder",
    "read_file": "file",
    "write_file": "pen",
    "edit_file": "pen",
    "move_file": "folder",
    "delete_file": "trash",
    "search_files": "find",
    "fetch_url": "globe",
    "web_search": "find",
    "recall": "recall",
    "current_time": "clock",
}


register.filter("visible", _visible)


class _Turn(Protocol):
    @property
    def is_live(self) -> bool: ...


class _Card(Protocol):
    @property
    def is_error(self) -> bool: ...


@register.filter
def prose(html: str) -> SafeString:
    """Let rendered HTML into the page."""
    if isinstance(html, SafeData):
        return SafeString(html)
    return mark_safe(clean(html))  # noqa: S308 - cleaned in this line


@register.filter
def dollars(micros: int | None) -> str:
    """Show micro-dollars with as many digits as they are worth."""
    if micros is None:
        return ""
    sign, size = ("-" if micros < 0 else ""), abs(micros)
    if 0 < size < 50:
        return f"{sign}<$0.0001"
    places = 2 if size >= 1_000_000 or size == 0 else 3 if size >= 10_000 else 4
    unit = 10 ** (6 - places)
    whole, rest = divmod((size + unit // 2) // unit, 10**places)
    return f"{sign}${whole:,}.{rest:0{places}d}"


@register.filter
def worth(amount: int | None, unit: str) -> str:
    """Show an amount in the unit of its budget."""
    if amount is None or unit == "money":
        return dollars(amount)
    if unit == "turns":
        return ngettext("%(number)s turn", "%(number)s turns", amount) % {"number": f"{amount:,}"}
    return _("%(number)s tokens") % {"number": f"{amount:,}"}


@register.filter
def budget_name(period: str) -> str:
    """Name the budget of a period."""
    names = {
        "hour": _("this hour's budget"),
        "day": _("today's budget"),
        "week": _("this week's budget"),
        "month": _("this month's budget"),
    }
    return names.get(period, _("the budget"))


@register.filter
def tokens(count: int | None) -> str:
    """Show a count of tokens short: 96301 is 96k."""
    if count is None:
        return ""
    if count < 1_000:
        return str(count)
    if count < 9_950:
        return f"{(count + 50) // 100 / 10:g}k"
    if count < 999_500:
        return f"{(count + 500) // 1_000}k"
    if count < 999_995_000:
        return f"{(count + 5_000) // 10_000 / 100:g}M"
    return f"{(count + 5_000_000) // 10_000_000 / 100:g}B"


@register.filter
def duration(milliseconds: int | None) -> str:
    """Show a duration in the unit that fits it."""
    if milliseconds is None:
        return ""
    if milliseconds < 1_000:
        return _("%(number)d ms") % {"number": milliseconds}
    if milliseconds < 60_000:
        return _("%(number)s s") % {"number": f"{milliseconds / 1000:.1f}"}
    minutes, seconds = divmod(milliseconds // 1000, 60)
    return _("%(minutes)d min %(seconds)d s") % {"minutes": minutes, "seconds": seconds}


@register.filter
def seconds(count: int) -> str:
    """Show a time in whole seconds or, from two minutes on, minutes."""
    if count < 120 or count % 60:
        return _("%(number)d s") % {"number": count}
    return _("%(number)d min") % {"number": count // 60}


@register.filter
def share(part: int, whole: int) -> int:
    """Give a part as whole percent, between 0 and 100."""
    return max(0, min(100, part * 100 // whole)) if whole else 0


@register.filter
def commas(number: int) -> str:
    return f"{number:,}"


@register.filter
def minus(number: int, other: int) -> int:
    return max(0, number - other)


@register.filter
def has_live(turns: Iterable[_Turn]) -> bool:
    return any(turn.is_live for turn in turns)


@register.filter
def has_error(cards: Iterable[_Card]) -> bool:
    return any(card.is_error for card in cards)


@register.filter
def tool_icon(name: str) -> str:
    return _TOOL_ICONS.get(name, "tool")


@register.simple_tag
def icon(name: str) -> SafeString:
    """Draw an icon of the page's sheet."""
    return format_html('<svg class="icon" aria-hidden="true"><use href="#i-{}"/></svg>', name)


@register.inclusion_tag("conversations/_partials/file_rules.html")
def file_rules() -> dict[str, object]:
    """Tell the script of the composer which files are taken."""
    return {
        "most_files": conf.max_attachments,
        "most_image": media.MOST_IMAGE,
        "most_pdf": media.MOST_PDF,
        "most_text": media.MOST_TEXT,
        "most_side": media.MOST_SIDE_OF_MANY,
        "paste": conf.paste_as_file_chars,
        "images": " ".join(images.TYPES),
        "taken": media.TAKEN,
    }
