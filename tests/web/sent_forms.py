"""What a browser sends of a page of the admin, or of settings, that is saved as it is."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from django.test import Client

Sent = dict[str, Any]


class _Fields(HTMLParser):
    """The fields of the page's own form with their values; those that are not ticked are absent."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: dict[str, list[str]] = {}
        self._is_inside, self._select, self._area = False, "", ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        name, value = found.get("name") or "", found.get("value") or ""
        if tag == "form":
            is_admin = (found.get("id") or "").endswith("_form")
            self._is_inside = is_admin or found.get("class") == "form"
        if not self._is_inside:
            return
        if tag == "input" and name and found.get("type") != "submit":
            is_box = found.get("type") in ("checkbox", "radio")
            if not is_box or "checked" in found:
                self._add(name, "on" if is_box and not value else value)
        elif tag == "select":
            self._select = name
        elif tag == "option" and "selected" in found:
            self._add(self._select, value)
        elif tag == "textarea":
            self._area = name
            self._add(name, "")

    def handle_data(self, data: str) -> None:
        if self._area:
            # The line end after the tag is none of the text.
            self.found[self._area][-1] += data.removeprefix("\n").replace("\n", "\r\n")

    def handle_endtag(self, tag: str) -> None:
        self._area = ""
        if tag == "form":
            self._is_inside = False

    def _add(self, name: str, value: str) -> None:
        if name != "csrfmiddlewaretoken" and "__prefix__" not in name:
            self.found.setdefault(name, []).append(value)


def open_form(client: Client, path: str) -> Sent:
    """Return what is sent when the page is saved as it is."""
    return read_form(client.get(path))


def read_form(page: Any, *, status: int = 200) -> Sent:
    """Return what is sent when a page that was answered is saved as it is."""
    assert page.status_code == status
    return dict(_Fields(page.content.decode()).found)


def without(sent: Sent, *names: str) -> Sent:
    """Return what is sent when these boxes are unticked."""
    return {name: value for name, value in sent.items() if name not in names}
