"""Pages and frames are sent without the layout white space of the templates' sources."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.template.loader import get_template

from agentweb.site.template_loader import strip_layout

TEMPLATES = Path(settings.BASE_DIR) / "templates"


LINK = '<a\n  href="/x/"\n  {% if y > 1 %}download{% endif %}\n>'
TITLE = '<a\n  title="{% translate "a > b" %}"\n  class="c\n         d"\n>\n  e'
TEXT = "<pre\n  dir='auto'\n>  a\n    <ins\n>b</ins\n>\n  </pre>\n  c"


@pytest.mark.parametrize(
    ("source", "sent"),
    [
        ("<p>\n  one\n  <b>two</b>\n</p>\n", "<p>\none\n<b>two</b>\n</p>\n"),
        (LINK, '<a href="/x/" {% if y > 1 %}download{% endif %}>'),
        (TITLE, '<a title="{% translate "a > b" %}" class="c d">\ne'),
        ("<br\n  class='x'\n/> a\n  < b", "<br class='x' /> a\n< b"),
        (TEXT, "<pre dir='auto'>  a\n    <ins>b</ins>\n  </pre>\nc"),
        ("<textarea>\n  a</textarea\n>", "<textarea>\n  a</textarea>"),
    ],
)
def test_what_is_sent_has_no_layout_and_the_same_spaces(source: str, sent: str) -> None:
    assert strip_layout(source) == sent


def test_a_template_is_read_once_and_without_its_layout() -> None:
    source = get_template("conversations/chat.html").template.source
    assert source == strip_layout((TEMPLATES / "conversations/chat.html").read_text("utf-8"))
    assert not re.search(r"^ ", source, re.MULTILINE)


def test_messages_over_several_lines_are_trimmed() -> None:
    """Otherwise the looked-up text would differ from that in the source."""
    bodies = re.compile(r"\{% blocktranslate(?! trimmed)\b[^%]*%\}(.*?)\{% endblock", re.DOTALL)
    texts = {path.name: path.read_text("utf-8") for path in TEMPLATES.rglob("*.html")}
    assert [name for name, text in texts.items() if "\n" in "".join(bodies.findall(text))] == []
