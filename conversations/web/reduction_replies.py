"""Responses to manual changes: the marker in every tab, or a refusal.

With htmx the response is the button in its new state; the marker arrives by the socket, in this tab
as in all others. Without htmx the page is shown again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django_htmx.http import reswap, retarget

from conversations.agent.events import TurnClosed
from conversations.library.access import load_owned_conversation
from conversations.live.publish import announce
from conversations.reductions.record_change import ManualChangeError
from conversations.reductions.shapes import PinState
from conversations.web.page_shell import render_refusal
from conversations.web.responses import read_next, require_user

if TYPE_CHECKING:
    from conversations.models import Conversation, Transformation

#: The elements that show a refusal: the first is in the chat, the second in the inspector.
PLACES = "#composer-error, #hand-error"
Act = Callable[[], "Transformation | None"]


def publish_change(conversation: Conversation, change: Transformation | None) -> None:
    """Publish a change to every tab."""
    if change is not None and change.turn is not None:
        async_to_sync(announce)(conversation.pk, TurnClosed(change.turn.number))


def make_manual_change(
    request: HttpRequest,
    conversation: Conversation,
    act: Act,
    keep: PinState | None = None,
    part: str = "pin_button",
) -> HttpResponse:
    """Make the change, publish it, and return its button in the new state, nothing, or the page."""
    try:
        publish_change(conversation, act())
    except ManualChangeError as error:
        return refuse_change(request, conversation, error)
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect(read_next_page(request, conversation))
    if keep is None:
        return HttpResponse()
    context = {"conversation": conversation, "keep": keep, "has_focus": True}
    return render(request, f"conversations/_partials/{part}.html", context)


def answer_click(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Respond to a click whose effect arrives by the socket; without htmx show the page again."""
    if request.htmx:  # type: ignore[attr-defined]
        return HttpResponse(status=204)
    return redirect(read_next_page(request, conversation))


def answer_original_change(
    request: HttpRequest,
    public_id: UUID,
    act: Callable[..., Transformation | None],
    keep: PinState,
    part: str = "pin_button",
) -> HttpResponse:
    """Change the original that the form names; `keep` is the button's state afterwards."""
    user = require_user(request)
    conversation = load_owned_conversation(user, public_id)
    name = request.POST.get("id", "")
    owned = {"conversation_id": conversation.pk, "actor_id": user.pk, "ids": [name]}
    return make_manual_change(
        request, conversation, lambda: act(**owned), replace(keep, id=name), part
    )


def refuse_change(
    request: HttpRequest, conversation: Conversation, error: ManualChangeError
) -> HttpResponse:
    """Return the refusal: 409 when the conversation moved on, else 400."""
    status = 409 if error.code in ("busy", "moved", "asking") else 400
    if not request.htmx:  # type: ignore[attr-defined]
        back = read_next_page(request, conversation)
        return render_refusal(request, conversation, error.text, back=back, status=status)
    page = "conversations/_partials/send_error.html"
    response = render(request, page, {"error": error.text}, status=status)
    return reswap(retarget(response, PLACES), "innerHTML")


def read_next_page(request: HttpRequest, conversation: Conversation) -> str:
    """Return the address of the form's page; that of the chat if it names none of this site."""
    return read_next(request.POST) or reverse("chat", args=[conversation.public_id])
