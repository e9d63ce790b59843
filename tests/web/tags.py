"""Parses HTML as a browser would: elements and their attributes."""

from __future__ import annotations

from html.parser import HTMLParser

#: Attributes that execute or load something by themselves.
ACTING = ("on", "style", "srcdoc", "formaction", "background", "poster", "ping", "srcset")


class Elements(HTMLParser):
    """The elements of an HTML text, in order: (name, attributes)."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def elements(text: str) -> list[tuple[str, dict[str, str | None]]]:
    return Elements(text).found


def names(text: str) -> set[str]:
    return {tag for tag, _ in elements(text)}


def attributes(text: str) -> set[str]:
    return {name for _, attrs in elements(text) for name in attrs}


def acting(text: str) -> list[str]:
    """List what would execute or load in the page, other than our own static files."""
    found = [name for name in attributes(text) if name.startswith(ACTING)]
    for tag, attrs in elements(text):
        source = attrs.get("src") or ""
        if tag == "script" and not source.startswith("/static/"):
            found.append(f"script {source}")
        if tag in {"iframe", "object", "embed", "base", "video", "audio", "style"}:
            found.append(tag)
        if tag == "img" and not source.startswith("data:image/"):
            found.append(f"img {source}")
        if (attrs.get("href") or "").strip().lower().startswith(("javascript:", "data:", "vb")):
            found.append(f"href {attrs['href']}")
    return found
