"""Text shown as it is: escaped, its line breaks kept, its direction its own."""

from __future__ import annotations

import re

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

# Control characters have no glyph; a browser drops some and trips over others.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def replace_controls(text: str) -> str:
    return _CONTROLS.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def render_plain(text: str) -> SafeString:
    """Return a person's own words, or what could not be rendered, as one paragraph."""
    return mark_safe(f'<p class="plain">{escape(replace_controls(text))}</p>')  # noqa: S308 - escaped
