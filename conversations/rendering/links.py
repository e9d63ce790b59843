"""Links: only http, https and mailto; images become links; a misleading link shows its host.

An image would be loaded without consent, and its URL can leak data that the model has read. As a
link that shows its host, it is loaded only if the reader chooses to.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from django.utils.html import escape
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

_HOST = re.compile(r"(?:https?://)?((?:[\w-]{1,63}\.){1,8}[\w-]{2,63})", re.IGNORECASE)
#: The tags whose list markers are on the side where the text begins.
_DIRECTED = {"bullet_list_open", "ordered_list_open", "blockquote_open"}
_BOX = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}


def read_host(url: str) -> str:
    """Return the host of a URL; "" when it has none."""
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""


def is_allowed(url: str) -> bool:
    """Return whether a link may be made of this address."""
    scheme, _, rest = url.strip().partition(":")
    match scheme.lower():
        case "http" | "https":
            return rest.startswith("//") and bool(read_host(url))
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
    """Return a note with the true host of a link whose text names another."""
    claim = _HOST.match(words.strip()[:200])
    true = read_host(url)
    if not claim or not true:
        return []
    claimed = claim[1].lower().removeprefix("www.")
    return [] if true == claimed or true.endswith(f".{claimed}") else [_note(true)]


def _note(name: str) -> Token:
    return Token("html_inline", "", 0, content=f' <span class="host">{escape(name)}</span>')


def _draw_box(first: Token) -> None:
    box = _BOX.get(first.content[:4]) if first.type == "text" else None
    if box:
        first.content = box + first.content[4:]
