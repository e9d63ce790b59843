"""The buttons that keep originals in full: pin, unpin, send in full next time, take back.

Each is a POST of its owner. With htmx the answer is the button in its new state; the marker of what
changed comes by the socket, to this tab as to all others. Without, the page comes back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from conversations.events import MeterMoved, TurnClosed
from conversations.queries.conversations import conversation_for
from conversations.queries.reductions import transformation
from conversations.queries.shapes import Keep
from conversations.queries.taken import taken
from conversations.services.pins import PinError, keep_in_full, release, undo_restore
from conversations.stage import announce
from conversations.views import person

if TYPE_CHECKING:
    from conversations.models import Conversation, Transformation

Act = Callable[[], "Transformation | None"]


@login_required
@require_POST
def pin(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Keep one original in full from now on; what was reduced is put back."""
    user = person(request)
    conversation = conversation_for(user, public_id)
    name = request.POST.get("id", "")
    return _answered(
        request,
        conversation,
        lambda: keep_in_full(conversation_id=conversation.pk, actor_id=user.pk, ids=[name]),
        Keep(name, is_pinned=True),
    )


@login_required
@require_POST
def unpin(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Let the next reductions take an original again."""
    user = person(request)
    conversation = conversation_for(user, public_id)
    name = request.POST.get("id", "")
    return _answered(
        request,
        conversation,
        lambda: release(conversation_id=conversation.pk, actor_id=user.pk, id=name),
        Keep(name),
    )


@login_required
@require_POST
def restore(request: HttpRequest, public_id: UUID, seq: int) -> HttpResponse:
    """Keep everything in full that a reduction took."""
    user = person(request)
    conversation = conversation_for(user, public_id)
    names = taken(conversation, transformation(conversation, seq))
    return _answered(
        request,
        conversation,
        lambda: keep_in_full(conversation_id=conversation.pk, actor_id=user.pk, ids=names),
    )


@login_required
@require_POST
def undo(request: HttpRequest, public_id: UUID, seq: int) -> HttpResponse:
    """Take a restore back."""
    user = person(request)
    conversation = conversation_for(user, public_id)
    if transformation(conversation, seq).kind != "restore":
        raise Http404("no restore")
    return _answered(
        request,
        conversation,
        lambda: undo_restore(conversation_id=conversation.pk, actor_id=user.pk, seq=seq),
    )


def _answered(
    request: HttpRequest, conversation: Conversation, act: Act, keep: Keep | None = None
) -> HttpResponse:
    try:
        change = act()
    except PinError as error:
        return _refused(request, conversation, error)
    if change is not None and change.turn is not None:
        for event in (TurnClosed(change.turn.number), MeterMoved()):
            async_to_sync(announce)(conversation.pk, event)
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect(_next(request, conversation))
    context = {"conversation": conversation, "keep": keep}
    return render(request, "conversations/_partials/kept.html", context)


def _refused(request: HttpRequest, conversation: Conversation, error: PinError) -> HttpResponse:
    status = 409 if error.code == "busy" else 400
    if not request.htmx:  # type: ignore[attr-defined]
        context = {
            "conversation": conversation,
            "error": error.text,
            "back": _next(request, conversation),
        }
        return render(request, "conversations/refused.html", context, status=status)
    page = "conversations/_partials/send_error.html"
    response = render(request, page, {"error": error.text}, status=status)
    response["HX-Retarget"], response["HX-Reswap"] = "#composer-error", "innerHTML"
    return response


def _next(request: HttpRequest, conversation: Conversation) -> str:
    """Give the page the form stood on, if it is one of ours."""
    wanted = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(wanted, allowed_hosts=None) and wanted.startswith("/"):
        return wanted
    return reverse("chat", args=[conversation.public_id])
