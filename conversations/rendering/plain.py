"""Plain text as HTML: escaped, with its line breaks, its own direction and its addresses linked."""

from __future__ import annotations

import re

from django.utils.html import format_html
from django.utils.safestring import SafeString

from conversations.rendering.autolinks import link_addresses

# Control characters have no glyph; browsers drop some and mishandle others.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def replace_controls(text: str) -> str:
    return _CONTROLS.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def escape_text(text: str) -> str:
    """Return ASCII as it is written between tags, in the form of `clean_html`."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def render_plain(text: str) -> SafeString:
    """Return text that is not Markdown, or could not be rendered, as one paragraph."""
    return format_html('<p class="plain">{}</p>', link_addresses(replace_controls(text)))
