"""Pages for tests: a logged-in client, its posts, the HTML of a response."""

from __future__ import annotations

from typing import Any

from django.test import Client

from conversations.models import User
from tests.support.stored_turns import Played
from tests.web.tags import acting

HTMX = {"HX-Request": "true"}


def client_of(user: User) -> Client:
    """Return a client with a session of the user."""
    client = Client()
    client.force_login(user)
    return client


def chat_path(played: Played) -> str:
    """Return the path of a chat without its last slash."""
    return f"/c/{played.conversation.public_id}"


def press(client: Client, path: str, *, htmx: bool = False, **data: Any) -> Any:
    """Post a form as a button does: plainly, or by htmx."""
    return client.post(path, data, headers=HTMX if htmx else {})


def html_of(client: Client, path: str) -> str:
    """Return the HTML of a page; check that it exists and has nothing executable inline."""
    page = client.get(path)
    assert page.status_code == 200
    html: str = page.content.decode()
    assert not acting(html)
    return html
