"""Shared by most pages: the sidebar, notices, and the response to a form.

A plain form is answered with the page and a notice. A form sent by htmx is answered with the parts
that changed, or with a redirect when its page no longer exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django_htmx.http import (
    HttpResponseClientRedirect,
    HttpResponseClientRefresh,
    trigger_client_event,
)

from conversations.library.access import load_owned_conversation
from conversations.library.sidebar import read_sidebar
from conversations.web.responses import read_next, require_user

if TYPE_CHECKING:
    from conversations.models import Conversation

_CHAT = re.compile(r"/c/([0-9a-f-]{36})/")


def build_page_context(
    request: HttpRequest, current: Conversation | None = None
) -> dict[str, object]:
    """Return what the frame of a page shows: the list of chats, with the page's own one marked."""
    return {"sidebar": read_sidebar(require_user(request), current)}


def refuse_post(
    request: HttpRequest, conversation: Conversation, text: str, status: int = 400
) -> HttpResponse:
    """Show why a post was refused: where its form shows errors, or on a page."""
    if request.htmx:  # type: ignore[attr-defined]
        page = "conversations/_partials/send_error.html"
        return render(request, page, {"error": text}, status=status)
    back = reverse("chat", args=[conversation.public_id])
    return render_refusal(request, conversation, text, back=back, status=status)


def render_refusal(
    request: HttpRequest, conversation: Conversation, text: str, *, back: str, status: int
) -> HttpResponse:
    """Show on a page why a change of a chat was refused; `back` is the address of its form."""
    context = build_page_context(request, conversation)
    context |= {"conversation": conversation, "error": text, "back": back}
    return render(request, "conversations/refused.html", context, status=status)


def find_current(request: HttpRequest) -> Conversation | None:
    """Return the conversation of the page the request came from, if the user may still see it."""
    match = _CHAT.match(_read_current_path(request))
    try:
        return load_owned_conversation(require_user(request), UUID(match[1])) if match else None
    except (Http404, ValueError):
        return None


@contextmanager
def not_found_if_erased() -> Iterator[None]:
    """Raise Http404 when the conversation was erased since it was looked up."""
    try:
        yield
    except ObjectDoesNotExist as error:
        raise Http404("erased") from error


def add_notice(request: HttpRequest, text: str, *, undo: str = "") -> None:
    """Show a text on the next page; `undo` is the address that reverses the action."""
    messages.success(request, text, extra_tags=undo)


def answer_change(
    request: HttpRequest, conversation: Conversation, *, gone: bool = False
) -> HttpResponse:
    """Respond to a form that changed a conversation; `gone`: it is no longer in its list."""
    path = _read_current_path(request)
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect(
            read_next(request.POST)
            or ("list" if gone else reverse("chat_menu", args=[conversation.public_id]))
        )
    chat = reverse("chat", args=[conversation.public_id])
    if gone and path.startswith(chat):
        # The conversation's own pages no longer exist either.
        return HttpResponseClientRedirect(reverse("new_chat" if path == chat else "list"))
    return _show_list(request)


def answer_folder_change(request: HttpRequest, back: str, *, gone: str = "") -> HttpResponse:
    """Respond to a form that changed a folder: a page without htmx goes on to `back`.

    `gone` is the address of the folder's own page, if that no longer exists.
    """
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect(read_next(request.POST) or back)
    path = _read_current_path(request)
    if gone and path in (gone, reverse("new_chat")):
        # The page of a new chat may name the folder.
        return HttpResponseClientRedirect(reverse("list") if path == gone else path)
    return _show_list(request)


def _show_list(request: HttpRequest) -> HttpResponse:
    """Replace the list of chats where the page is a chat's; reload any other page."""
    path = _read_current_path(request)
    if not _CHAT.fullmatch(path) and path != reverse("new_chat"):
        return HttpResponseClientRefresh()
    here = find_current(request)
    context = {"sidebar": read_sidebar(require_user(request), here), "conversation": here}
    response = render(request, "conversations/_partials/list_changed.html", context)
    return trigger_client_event(response, "kept")


def _read_current_path(request: HttpRequest) -> str:
    try:
        return urlsplit(request.headers.get("HX-Current-URL", "")).path
    except ValueError:
        return ""
