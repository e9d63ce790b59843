"""Bare web and mail addresses become links, by the rules of GitHub's autolink extension.

Web addresses begin with http://, https:// or www.; a name without either ("README.md", "node.js")
is no address. Wider than that extension is what may stand before an address (quotation marks,
colons, any letter that is not Latin); an address also ends before quotation marks and East Asian
punctuation. Not linked is an address with a user name in it, which can look like another host.

Two libraries do this and neither is linear: for 20,000 characters made for it, linkify-it-py took
9.3 s ("www.www.") and the plug-in of mdit-py-plugins 0.7 s ("http:http:"). Here each character is
looked at a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from conversations.rendering.links import is_allowed
from conversations.rendering.sanitise import clean_html

#: Characters of an address; longer ones are cut.
MOST = 2_000
_ENDS_WORD = "“”„‟«»‹›\u3000-\u303f\uff01-\uff0f\uff1a\uff1b\uff1f\uff3b-\uff3d\uff5b-\uff65"
_REST = rf"[^\s<>|`\"\\\x00-\x1f\ufffd{_ENDS_WORD}]{{1,{MOST}}}"
_MAIL = r"(?:[a-z0-9_-]{1,63}\.){1,8}[a-z0-9-]{0,62}[a-z0-9](?![\w@-])"
_ADDRESS = re.compile(
    rf"(?:(?<![a-z0-9_])|(?<=\\[nrt]))(?P<scheme>https?://)(?P<rest>{_REST})"
    rf"|(?<![\w./:@-])(?P<www>www\.{_REST})"
    rf"|(?<![\w.+/:-])(?:mailto:)?(?P<mail>[a-z0-9.+_-]{{1,64}}@{_MAIL})",
    re.IGNORECASE,
)
_HOST = re.compile(r"([\w.-]{1,253})(?![\w.@-]|:[^/?#@]{0,64}@)")
_SCHEME = re.compile(r"https?$", re.IGNORECASE)
_ENTITY = re.compile(r"&[a-z0-9]{1,32};$", re.IGNORECASE)
_OPEN = {")": "(", "]": "[", "}": "{"}
_TRAILING = "?!.,:;*_~'’‘…"


class Address(NamedTuple):
    """An address at text[start:end], and where it leads."""

    start: int
    end: int
    href: str


def find_addresses(text: str) -> Iterator[Address]:
    """Yield the addresses of a plain text, in order."""
    if not ("://" in text or "@" in text or "www." in text.lower()):
        # Most texts have none, and a search takes fifty times as long as this.
        return
    at = 0
    while found := _ADDRESS.search(text, at):
        address = _read(found)
        if address:
            yield address
        at = address.end if address else found.end()


def _read(found: re.Match[str]) -> Address | None:
    if mail := found["mail"]:
        return Address(found.start(), found.end(), f"mailto:{mail}")
    scheme = found["scheme"] or ""
    rest = found["rest"] or found["www"]
    host = _HOST.match(rest)
    if host is None or not _is_name(host[1].rstrip(_TRAILING), is_web=bool(scheme)):
        return None
    rest = _trim(rest)
    end = found.start() + len(scheme) + len(rest)
    return Address(found.start(), end, f"{scheme or 'http://'}{rest}")


def _trim(address: str) -> str:
    """Leave out the punctuation after an address, and brackets that were opened before it."""
    end = len(address)
    opened = {closing: address.count(closing) - address.count(_OPEN[closing]) for closing in _OPEN}
    while end:
        last = address[end - 1]
        entity = _ENTITY.search(address, max(0, end - 34), end) if last == ";" else None
        if entity is None and last not in _TRAILING and opened.get(last, 0) <= 0:
            break
        end = entity.start() if entity else end - 1
        if last in opened:
            opened[last] -= 1
    return address[:end]


def _is_name(host: str, *, is_web: bool) -> bool:
    """Return whether this can be a host; the last two parts of its name have no underline."""
    parts = host.split(".")
    return all(parts) and "_" not in "".join(parts[-2:]) and (is_web or len(parts) > 1)


def link_addresses(text: str) -> SafeString:
    """Return a plain text as HTML in which the addresses are links."""
    parts, at = list[str](), 0
    for start, end, href in find_addresses(text):
        if not is_allowed(href):
            continue
        parts += (escape(text[at:start]), f'<a href="{escape(href)}">{escape(text[start:end])}</a>')
        at = end
    if not parts:
        return SafeString(escape(text))
    return mark_safe(clean_html("".join((*parts, escape(text[at:])))))  # noqa: S308 - cleaned in this line


def add_autolinks(md: MarkdownIt) -> None:
    """Register both rules: the first sees web addresses before emphasis is looked for in them."""
    md.inline.ruler.push("web_address", _parse_web_address)
    md.core.ruler.after("inline", "autolinks", _link_texts)


def _parse_web_address(state: StateInline, silent: bool) -> bool:
    if silent or state.linkLevel or not state.src.startswith("://", state.pos):
        return False
    scheme = _SCHEME.search(state.pending[-5:])
    start = state.pos - len(scheme[0]) if scheme else state.pos
    found = _ADDRESS.match(state.src, start, state.posMax)
    address = _read(found) if found else None
    if address is None:
        return False
    href = state.md.normalizeLink(address.href.replace("&amp;", "&"))
    if not state.md.validateLink(href):
        return False
    state.pending = state.pending[: start - state.pos]
    state.push("link_open", "a", 1).attrs = {"href": href}
    state.push("text", "", 0).content = state.src[start : address.end]
    state.push("link_close", "a", -1)
    state.pos = address.end
    return True


def _link_texts(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline":
            token.children = list(_link_children(token.children or [], state.md))


def _link_children(children: list[Token], md: MarkdownIt) -> Iterator[Token]:
    depth = 0
    for child in children:
        depth += {"link_open": 1, "link_close": -1}.get(child.type, 0)
        if child.type == "text" and not depth:
            yield from _split_text(child.content, md)
        else:
            yield child


def _split_text(text: str, md: MarkdownIt) -> Iterator[Token]:
    at = 0
    for start, end, href in find_addresses(text):
        target = md.normalizeLink(href)
        if not md.validateLink(target):
            continue
        yield Token("text", "", 0, content=text[at:start])
        yield Token("link_open", "a", 1, attrs={"href": target})
        yield Token("text", "", 0, content=text[start:end])
        yield Token("link_close", "a", -1)
        at = end
    yield Token("text", "", 0, content=text[at:])
