"""Numbers for people, icons, and `prose`, the only way to put generated HTML into a page.

No template uses `safe`: HTML goes through `prose`, which passes our own rendering unchanged and
sanitises anything else (HTML from the channel layer is a plain string).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from conversations.budgets.units import show_amount
from conversations.conf import conf
from conversations.context.tokens import images, media
from conversations.files.file_texts import TAKEN
from conversations.models.catalogue import is_model_in
from conversations.rendering import clean_html, link_addresses, numbers
from conversations.rendering.model_names import name_model
from conversations.rendering.numbers import write_number
from conversations.rendering.visible import reveal_hidden as _visible
from tools.framework.registry import icon_of

register = template.Library()

for _filter in (
    numbers.cents,
    numbers.dollars,
    numbers.budget_name,
    numbers.of_budget,
    numbers.budget_source,
    numbers.tokens,
    numbers.duration,
    numbers.seconds,
):
    register.filter(_filter)
register.filter("worth", show_amount)
register.filter("visible", _visible)
register.filter("linked", link_addresses)
register.filter("model_name", name_model)
register.filter("tool_icon", icon_of)


@register.filter
def is_in(model: str, scopes: tuple[str, ...] | str) -> bool:
    """Return whether a model is named by one of these models and families."""
    return any(is_model_in(scope, model) for scope in scopes)


class _Turn(Protocol):
    @property
    def number(self) -> int: ...

    @property
    def is_live(self) -> bool: ...


class _Card(Protocol):
    @property
    def has_failed(self) -> bool: ...


@register.filter
def prose(html: str) -> SafeString:
    """Return rendered HTML as safe for the page; sanitise it unless it is marked safe already."""
    if isinstance(html, SafeString):
        return html
    return mark_safe(clean_html(html))  # noqa: S308 - cleaned in this line


@register.filter
def share(part: int, whole: int) -> int:
    """Return a part as whole percent, between 0 and 100."""
    return max(0, min(100, part * 100 // whole)) if whole else 0


@register.filter
def commas(number: int) -> str:
    return write_number(number)


@register.filter
def minus(number: int, other: int) -> int:
    return max(0, number - other)


@register.filter
def live_number(turns: Iterable[_Turn]) -> int:
    """Return the number of the running turn, 0 for none."""
    return next((turn.number for turn in turns if turn.is_live), 0)


@register.filter
def has_failure(cards: Iterable[_Card]) -> bool:
    return any(card.has_failed for card in cards)


@register.simple_tag
def icon(name: str) -> SafeString:
    """Draw an icon of the page's sprite sheet."""
    return format_html('<svg class="icon" aria-hidden="true"><use href="#i-{}"/></svg>', name)


@register.inclusion_tag("conversations/_partials/file_rules.html")
def file_rules() -> dict[str, object]:
    """Return the rules about accepted files for the composer's script."""
    return {
        "most_files": conf.max_attachments,
        "most_image": media.MOST_IMAGE,
        "most_pdf": media.MOST_PDF,
        "most_text": media.MOST_BYTES,
        "most_side": media.MOST_SIDE_OF_MANY,
        "paste": conf.paste_as_file_chars,
        "images": " ".join(images.TYPES),
        "taken": TAKEN,
    }
