"""The second barrier: the tags, attributes and class names allowed in model text.

Class names are closed lists, so model text cannot imitate a part of the page. There are no ids (no
DOM clobbering), no images, styles or data attributes (nothing loads, nothing acts). Of MathML there
is what `mathml` writes, value by value: no links, no actions, and none of the elements in which
HTML begins again (annotation-xml, mglyph, malignmark).
"""

from __future__ import annotations

import nh3

from conversations.rendering import mathml
from conversations.rendering.code import CLASSES, LANGUAGES
from conversations.rendering.continued import CLASS as FURTHER

_TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "a", "span", "div"),
    *("ul", "ol", "li", "h1", "h2", "h3", "h4", "h5", "h6"),
    *("table", "thead", "tbody", "tr", "th", "td"),
    *mathml.ELEMENTS,
}
_ALIGNMENTS = {"start", "center", "end"}

_CLEANER = nh3.Cleaner(
    tags=_TAGS,
    clean_content_tags={"script", "style"},
    attributes={"a": {"href"}, "ol": {"start"}, "*": set()},
    tag_attribute_values={
        **{tag: {"dir": {"auto"}} for tag in ("ul", "ol", "blockquote", "div")},
        **mathml.ATTRIBUTES,
    },
    allowed_classes={
        "p": {"plain"},
        "div": {"table", "formula", "code", FURTHER},
        "ul": {FURTHER},
        "ol": {FURTHER},
        "span": {"host", "lang", *CLASSES},
        "code": {f"language-{name}" for name in LANGUAGES},
        "th": _ALIGNMENTS,
        "td": _ALIGNMENTS,
        **mathml.CLASSES,
    },
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
    link_rel="noopener noreferrer nofollow",
    set_tag_attribute_values={"a": {"target": "_blank"}},
)


def clean_html(fragment: str) -> str:
    """Keep what the list allows; other elements lose their tags or are dropped."""
    return _CLEANER.clean(fragment)
