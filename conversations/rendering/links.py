"""Links: only http, https and mailto; images become links; each link shows its host.

An image would be loaded without consent, and its URL can leak data that the model has read. As a
link that shows its host, it is loaded only if the reader chooses to.

A link is made only of an address in which every parser sees the same host: letters, digits,
hyphens and dots, in ASCII. So there is nothing to compare with look-alike letters and dots of all
scripts: whatever the text of a link looks like, its host stands beside it, letter by letter, unless
the text begins with that very host.
"""

from __future__ import annotations

import re
import unicodedata
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from django.utils.html import escape
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

#: The host of an address, as a browser reads it whatever follows: a name or an IPv6 address.
_AUTHORITY = re.compile(
    r"https?://(?:([a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*)\.?|\[([0-9a-f:.]{2,45})\])"
    r"(?::\d{1,5})?(?=[/?#]|\Z)",
    re.IGNORECASE | re.ASCII,
)
#: A last label that makes a browser read the whole host as an IPv4 address.
_NUMBER = re.compile(r"(?:\d+|0x[0-9a-f]*)", re.IGNORECASE | re.ASCII)
_LONGEST_HOST = 253
#: The tags whose list markers are on the side where the text begins.
_DIRECTED = {"bullet_list_open", "ordered_list_open", "blockquote_open"}
_BOX = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}


def read_host(url: str) -> str:
    """Return the host of a URL, without "www."; "" when it has none that is clear."""
    found = _AUTHORITY.match(url)
    if found is None or len(found[0]) > _LONGEST_HOST:
        return ""
    host = (found[1] or f"[{found[2]}]").lower()
    is_plain = host[0] != "[" and not _NUMBER.fullmatch(host.rpartition(".")[2])
    if not is_plain and not _is_address(host):
        return ""
    return host.removeprefix("www.")


def _is_address(host: str) -> bool:
    """Return whether a host is an IP address in its usual spelling."""
    try:
        if host.startswith("["):
            return str(IPv6Address(host[1:-1])) == host[1:-1]
        return str(IPv4Address(host)) == host
    except AddressValueError:
        return False


def is_allowed(url: str) -> bool:
    """Return whether a link may be made of this address."""
    scheme, _, rest = url.partition(":")
    match scheme.lower():
        case "http" | "https":
            return bool(read_host(url))
        case "mailto":
            return "@" in rest
        case _:
            return False


def finish_links(state: StateCore) -> None:
    """Turn images into links, show hosts, draw check boxes, set the direction of lists."""
    is_item = False
    for token in state.tokens:
        if token.type in _DIRECTED:
            token.attrs["dir"] = "auto"
        if token.type == "inline":
            token.children = _finish_children(token.children or [])
            if is_item and token.children:
                _draw_box(token.children[0])
        is_item = token.type == "list_item_open" or (is_item and token.type == "paragraph_open")


def _finish_children(children: list[Token]) -> list[Token]:
    done: list[Token] = []
    opened: Token | None = None
    words = ""
    for child in children:
        match child.type:
            case "link_open":
                opened, words = child, ""
                done.append(child)
            case "link_close":
                done.append(child)
                done += _note_host(str(opened.attrs["href"]) if opened else "", words)
                opened = None
            case "image":
                done += _link_image(child, is_inside=opened is not None)
            case _:
                words += child.content
                done.append(child)
    return done


def _link_image(image: Token, *, is_inside: bool) -> list[Token]:
    url = str(image.attrs["src"])
    words = Token("text", "", 0, content=f"▧ {image.content or url}")
    if is_inside:
        return [words]
    opening = Token("link_open", "a", 1, attrs={"href": url})
    return [opening, words, Token("link_close", "a", -1), _note(read_host(url))]


def _note_host(url: str, words: str) -> list[Token]:
    """Return a note with the host of a link whose text does not begin with that host."""
    host = read_host(url)
    if not host or (_begins_with(words.strip(), host) and not any(map(_is_hidden, words))):
        return []
    return [_note(host)]


def _begins_with(words: str, host: str) -> bool:
    shown = rf"(?:https?://)?(?:www\.)?{re.escape(host)}(?=[/?#:]|\Z)"
    return bool(re.match(shown, words, re.IGNORECASE | re.ASCII))


def _is_hidden(char: str) -> bool:
    """Return whether a character is not seen, or turns the direction of what follows."""
    return unicodedata.category(char) in ("Cc", "Cf", "Co", "Cn")


def _note(name: str) -> Token:
    return Token("html_inline", "", 0, content=f' <span class="host">{escape(name)}</span>')


def _draw_box(first: Token) -> None:
    box = _BOX.get(first.content[:4]) if first.type == "text" else None
    if box:
        first.content = box + first.content[4:]
