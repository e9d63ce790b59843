"""Markdown to safe HTML, on the server, bounded in time and size.

The browser never parses Markdown. The source text is stored; HTML is made from it here, in the
caller's thread, and complete renderings are cached by their source. What was streamed is its own
complete rendering where that is certain to be the same. There are three barriers: the parser has
HTML and images off, nh3 passes a short list of tags and a closed list of class names, and the
page's policy runs nothing inline. This package returns `SafeString`; nothing else in the
project makes one of model text.

Alternatives were client-side Markdown (client state, a second parser, HTML from the model in the
page) and rendering the whole answer again for each piece (quadratic: measured 16 s of browser time
for an answer of 4,000 tokens, against 4 s for closed blocks plus the tail).
"""

from __future__ import annotations

from functools import lru_cache

from django.utils.safestring import SafeString, mark_safe

from conversations.rendering.autolinks import link_addresses
from conversations.rendering.incremental import Incremental
from conversations.rendering.markdown import convert_markdown
from conversations.rendering.plain import render_plain
from conversations.rendering.sanitise import clean_html

__all__ = [
    "Incremental",
    "clean_html",
    "keep_streamed",
    "link_addresses",
    "render_markdown",
    "render_plain",
]

#: Sources up to this many characters are cached with their HTML, which bounds the cache.
CACHED_CHARS = 32_000
#: Most streamed answers that are kept for their first rendering.
MOST_STREAMED = 64
_streamed: dict[str, SafeString] = {}


def render_markdown(source: str) -> SafeString:
    """Return the safe HTML of a complete text."""
    return _render_cached(source) if len(source) <= CACHED_CHARS else _render(source)


def keep_streamed(source: str, streamed: Incremental) -> None:
    """Keep what was shown of an answer for its first rendering, where that gives the same."""
    html = streamed.find_whole(source)
    if html is not None:
        if len(_streamed) >= MOST_STREAMED:
            _streamed.clear()
        _streamed[source] = html


def _render(source: str) -> SafeString:
    html = _streamed.pop(source, None)
    if html is not None:
        return html
    return mark_safe(clean_html(convert_markdown(source)))  # noqa: S308 - cleaned in this line


_render_cached = lru_cache(maxsize=512)(_render)
