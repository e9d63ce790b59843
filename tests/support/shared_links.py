"""Links to chats, for tests of what they show and to whom."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from conversations.library import shared_links
from conversations.library.access import load_shared_link
from conversations.library.shared_page import SharedTurn, read_shared_page
from conversations.models import Conversation, SharedLink


def shared(
    conversation: Conversation,
    audience: str = "people",
    *,
    with_tools: bool = False,
    expires_at: datetime | None = None,
    is_renewed: bool = False,
) -> SharedLink:
    """Make the link of a conversation, or change it."""
    return shared_links.share_conversation(
        conversation=conversation,
        terms=shared_links.LinkTerms(audience, with_tools, expires_at),
        is_renewed=is_renewed,
        peer="192.0.2.1",
    )


def token_of(link: SharedLink) -> str:
    return shared_links.compute_token(link)


def path_of(link: SharedLink) -> str:
    return f"/s/{token_of(link)}/"


def turns_of(link: SharedLink, after: int = 0) -> tuple[SharedTurn, ...]:
    """Return what somebody who is logged in reads by the link now."""
    found = load_shared_link(token_of(link), is_logged_in=True)
    return read_shared_page(found, after, lambda key: f"files/{key}").turns


def text_of(turns: Any) -> str:
    """Return everything that a template could show of the turns."""
    return repr(turns)
