"""Access to the inspector: the owner, or staff who may read content, which is recorded.

The owner's pages stand in the frame of the chat. A page for review has no list of chats: beside
what somebody else wrote the reviewer's own chats would look like theirs, and a click there would
leave the review unnoticed. Its way back is the conversation's page in the admin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from conversations.accounts.reading_log import CONTENT, record_reading
from conversations.accounts.reading_reasons import demand_reason
from conversations.library.access import load_any_conversation, load_owned_conversation
from conversations.web.page_shell import build_page_context
from conversations.web.responses import require_user

if TYPE_CHECKING:
    from conversations.models import Conversation


@dataclass(frozen=True, slots=True)
class Subject:
    """A conversation to show; `is_review`: to staff, who cannot change anything."""

    conversation: Conversation
    is_review: bool = False

    def address(self, name: str, *args: Any) -> str:
        """Return the address of an inspector page, for the owner or for review."""
        prefix = "review_" if self.is_review else ""
        names = {"change": f"{prefix}reduction", "timeline": f"{prefix}inspect"}
        route = names.get(name, f"{prefix}inspect_{name}")
        return reverse(route, args=[self.conversation.public_id, *args])


def open_subject(request: HttpRequest, public_id: UUID, what: str, *, is_review: bool) -> Subject:
    """Return a conversation for its owner, or for a recorded review.

    Raises Http404, and ReasonNeeded where staff have not said why.
    """
    reader = require_user(request)
    if not is_review:
        return Subject(load_owned_conversation(reader, public_id))
    if not reader.is_staff:
        raise Http404("not for this reader")
    conversation = load_any_conversation(public_id)
    if conversation.owner_id != reader.pk:
        if not reader.has_perm(CONTENT):
            raise Http404("not for this reader")
        reason = demand_reason(request.session, conversation.public_id)
        record_reading(reader=reader, conversation=conversation, what=what, reason=reason)
    return Subject(conversation, is_review=True)


def render_page(request: HttpRequest, seen: Subject, name: str, **more: object) -> HttpResponse:
    """Show a page of the inspector, or the part of one that htmx asks for."""
    context = {"subject": seen, "conversation": seen.conversation} | more
    if not (seen.is_review or request.htmx):  # type: ignore[attr-defined]
        context |= build_page_context(request, seen.conversation)
    return render(request, f"conversations/inspector/{name}.html", context)
