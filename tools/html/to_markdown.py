"""A web page as Markdown for the model: headings, lists, links and tables.

Scripts, navigation and hidden elements are dropped; everything else is kept in order, since
guessing "the article" loses exactly the table or the price that was asked for. The number of tokens
is bounded, so a page costs a second or two at most; a last line says where that cuts it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import assert_never

from tools.html.page_text import Page, collapse_spaces, resolve_link
from tools.html.scanner import MOST_TOKENS, End, Start, Text, Token, scan_html

INVISIBLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
REFRESH = re.compile(r"\s*(?:\d+\s*)?[;,]\s*url\s*=\s*[\"']?([^\"']+)", re.IGNORECASE)
HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
SKIPPED = frozenset({"nav", "template", "svg", "math", "noscript", "object", "select", "button"})
#: Elements that always have an end tag: only these can be skipped when they are hidden.
CLOSED = frozenset({"div", "span", "section", "article", "aside", "ul", "ol", "table", "a", "form"})
BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details"}
    | {"dialog", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header"}
    | {"hr", "html", "main", "p", "section", "summary", "tbody", "tfoot", "thead"}
)


#: Names of the date of publication in `meta`, and the longest value that is kept.
PUBLISHED = frozenset(
    {"article:published_time", "datepublished", "date", "dc.date", "dcterms.created", "pubdate"}
)
LONGEST_DATE = 60


def html_to_markdown(markup: str, url: str) -> str:
    """Return the title and text of a page; links are made absolute from its address."""
    reader, tokens = Reader(Page(url, address=url)), scan_html(markup)
    for token in islice(tokens, MOST_TOKENS):
        reader.take(token)
    text = reader.page.finished()
    if next(tokens, None) is None:
        return text
    note = f"[the page goes on; only its first {MOST_TOKENS:,} tags and texts are read]"
    return f"{text}\n\n{note}".lstrip()


@dataclass(slots=True)
class Reader:
    """Applies each token to the text of the page."""

    page: Page
    skipped: str = ""
    depth: int = 0
    is_title: bool = False

    def take(self, token: Token) -> None:
        if self.skipped:
            self.skip(token)
            return
        match token:
            case Start(name, attributes):
                self.start(name, attributes)
            case End(name):
                self.end(name)
            case Text(text):
                self.add(text)
            case _:
                assert_never(token)

    def add(self, text: str) -> None:
        if self.is_title:
            self.page.title, self.is_title = collapse_spaces(text), False
        else:
            self.page.add(text)

    def skip(self, token: Token) -> None:
        match token:
            case Start(self.skipped, _):
                self.depth += 1
            case End(self.skipped):
                self.depth -= 1
                self.skipped = self.skipped if self.depth else ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        page = self.page
        is_hidden = "hidden" in attributes or INVISIBLE.search(attributes.get("style", ""))
        match name:
            case _ if name in SKIPPED or (is_hidden and name in CLOSED):
                self.skipped, self.depth = name, 1
            case _ if name in BLOCKS:
                page.flush()
            case _ if name in HEADINGS:
                page.begin(HEADINGS[name])
            case "a":
                page.open_link(attributes.get("href", ""))
            case "br":
                page.break_line()
            case "li":
                page.open_item()
            case "ul" | "ol":
                page.open_list(1 if name == "ol" else None)
            case "pre":
                page.open_verbatim()
            case _:
                self.start_table_part(name, attributes)

    def start_table_part(self, name: str, attributes: dict[str, str]) -> None:
        match name:
            case "table":
                self.page.open_table()
            case "tr":
                self.page.open_row()
            case "td" | "th":
                self.page.open_cell()
            case _:
                self.read_attributes(name, attributes)

    def read_attributes(self, name: str, attributes: dict[str, str]) -> None:
        """Write what the attributes of elements without content say."""
        page = self.page
        match name:
            case "title":
                self.is_title = not page.title
            case "img" if alt := collapse_spaces(attributes.get("alt", "")):
                page.add(f" (image: {alt}) ")
            case "base":
                page.base = resolve_link(page.base, attributes.get("href", "")) or page.base
            case "meta" if _names(attributes) & PUBLISHED and not page.published:
                page.published = collapse_spaces(attributes.get("content", ""))[:LONGEST_DATE]
            case "link" if "canonical" in attributes.get("rel", "").lower().split():
                own = resolve_link(page.base, attributes.get("href", ""))
                page.canonical = own if own and own != page.address else page.canonical
            case "meta" if attributes.get("http-equiv", "").lower() == "refresh":
                found = REFRESH.match(attributes.get("content", ""))
                target = found and resolve_link(page.base, found[1])
                if target:
                    page.blocks.append((f"This page asks to continue at {target}", False))

    def end(self, name: str) -> None:
        page = self.page
        match name:
            case "a":
                page.close_link()
            case "ul" | "ol":
                page.close_list()
            case "pre":
                page.close_verbatim()
            case "table":
                page.close_table()
            case "td" | "th":
                page.close_cell()
            case "li":
                page.begin("")
            case "title":
                self.is_title = False
            case _ if name in HEADINGS:
                page.begin("")
            case _ if name in BLOCKS:
                page.flush()


def _names(attributes: dict[str, str]) -> set[str]:
    return {attributes.get(name, "").strip().lower() for name in ("property", "name", "itemprop")}
