"""Pages and the posts of their forms. Whoever may not see a thing gets the same 404."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AnonymousUser
from django.db import DatabaseError, connection
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from conversations.conf import conf
from conversations.forms import PromptForm, StartForm
from conversations.queries import meters, paging, transcripts
from conversations.queries.conversations import (
    conversation_for,
    enabled_models,
    live_turn,
    newest,
    turn_for,
)
from conversations.queries.listing import listing
from conversations.queries.originals import original
from conversations.queries.reductions import reduction as reduction_of
from conversations.queries.shapes import Transcript
from conversations.queries.standings import standing
from conversations.services import turns as services
from conversations.services.turns import SendError
from conversations.turns import supervisor
from tools.registry import TOOLS

if TYPE_CHECKING:
    from conversations.models import Conversation, Turn, User

logger = logging.getLogger("agentweb.views")


def person(request: HttpRequest) -> User:
    """Give the logged-in user of a view that requires one."""
    user = request.user
    assert not isinstance(user, AnonymousUser)  # noqa: S101
    return user


@login_required
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    found = newest(person(request))
    return redirect("new_chat") if found is None else redirect("chat", found.public_id)


@login_required
@require_safe
def new_chat(request: HttpRequest) -> HttpResponse:
    return render(request, "conversations/chat.html", _page(request, None))


@login_required
@require_safe
def chat(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """The chat: its newest turns, those `before` or `after` one, or those around message `m`."""
    conversation = conversation_for(person(request), public_id)
    page = paging.asked(conversation, request.GET)
    if page is not None and request.htmx:  # type: ignore[attr-defined]
        context = {"conversation": conversation, "transcript": page}
        return render(request, "conversations/_partials/earlier.html", context)
    return render(request, "conversations/chat.html", _page(request, conversation, page))


def _page(
    request: HttpRequest, conversation: Conversation | None, page: Transcript | None = None
) -> dict[str, object]:
    user = person(request)
    context: dict[str, object] = {
        "conversation": conversation,
        "sidebar": listing(user, conversation),
        "budget": meters.budget_pill(user.pk),
        "models": enabled_models(),
        "default_model": conf.model,
        "tools": [(tool.name, tool.description) for tool in TOOLS.values()],
        "can_review": user.is_staff,
        "example_prompts": EXAMPLES,
        "after": 0,
        "client_id": uuid4(),
        "draft": request.GET.get("prompt", ""),
    }
    if conversation is None:
        return context
    page = page or transcripts.transcript(conversation)
    finished = [turn for turn in page.turns if not turn.is_live]
    return context | {
        "transcript": replace(page, turns=tuple(finished)),
        "live_turns": [turn for turn in page.turns if turn.is_live],
        "after": page.newest or (finished[-1].number if finished else 0),
        "meter": meters.meter(conversation),
    }


EXAMPLES = (
    _("List the files in my workspace"),
    _("Write a file ideas.md with three ideas for a weekend project"),
    _("What time is it in Tokyo?"),
)


@login_required
@require_POST
def start(request: HttpRequest) -> HttpResponse:
    """Begin a conversation with its first message; a repeated post finds the first one."""
    user = person(request)
    form = StartForm(request.POST)
    if not form.is_valid():
        text = next(iter(form.errors.values()))[0]
        return _new_chat_error(request, str(text))
    try:
        turn = services.start_conversation(
            owner_id=user.pk,
            model=form.cleaned_data["model"] or conf.model,
            text=form.cleaned_data["text"],
            client_id=form.cleaned_data["client_id"],
        )
    except SendError as error:
        return _new_chat_error(request, error.text)
    supervisor.wake(turn.pk)
    return redirect("chat", turn.conversation.public_id)


def _new_chat_error(request: HttpRequest, text: str) -> HttpResponse:
    context = _page(request, None) | {"error": text, "draft": request.POST.get("text", "")}
    return render(request, "conversations/chat.html", context, status=400)


@login_required
@require_POST
def send(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Store a message and queue its turn; the answer comes by the socket."""
    conversation = conversation_for(person(request), public_id)
    form = PromptForm(request.POST)
    if not form.is_valid():
        return _send_error(request, str(next(iter(form.errors.values()))[0]))
    try:
        turn = services.send_prompt(conversation=conversation, **form.cleaned_data)
    except SendError as error:
        return _send_error(request, error.text, 409 if error.code == "busy" else 400)
    return _sent(request, turn)


@login_required
@require_POST
def retry(request: HttpRequest, public_id: UUID, number: int) -> HttpResponse:
    """Send the prompt of a turn that did not end well once more."""
    turn = turn_for(person(request), public_id, number)
    try:
        return _sent(request, services.retry_turn(turn=turn))
    except SendError as error:
        return _send_error(request, error.text, 409)


@login_required
@require_POST
def stop(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Ask the running turn to stop; stopping what has ended changes nothing."""
    conversation = conversation_for(person(request), public_id)
    turn = live_turn(conversation)
    if turn is not None:
        services.request_stop(turn=turn)
        supervisor.stop(turn)
    return _back(request, conversation)


@login_required
@require_safe
def reduction(request: HttpRequest, public_id: UUID, seq: int) -> HttpResponse:
    conversation = conversation_for(person(request), public_id)
    context = {"conversation": conversation, "reduction": reduction_of(conversation, seq)}
    return render(request, "conversations/reduction.html", context)


@login_required
@require_safe
def tool_output(request: HttpRequest, public_id: UUID, id: str) -> HttpResponse:
    """Show a whole tool result as text."""
    conversation = conversation_for(person(request), public_id)
    output = original(conversation.pk, id)
    if output is None:
        raise Http404("no such tool call")
    context = {
        "conversation": conversation,
        "id": id,
        "output": output,
        "standing": standing(conversation, id),
    }
    return render(request, "conversations/output.html", context)


@require_safe
def live(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok", content_type="text/plain")


@require_safe
def ready(request: HttpRequest) -> HttpResponse:
    """Say whether requests can be served: 503 while the database does not answer."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        logger.warning("not ready: %s", error)
        return HttpResponse("no database", content_type="text/plain", status=503)
    return HttpResponse("ok", content_type="text/plain")


def _sent(request: HttpRequest, turn: Turn) -> HttpResponse:
    supervisor.wake(turn.pk)
    return _back(request, turn.conversation, trigger="sent")


def _back(request: HttpRequest, conversation: Conversation, trigger: str = "") -> HttpResponse:
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("chat", conversation.public_id)
    response = render(request, "conversations/_partials/sent.html", {"conversation": conversation})
    if trigger:
        response["HX-Trigger"] = trigger
    return response


def _send_error(request: HttpRequest, text: str, status: int = 400) -> HttpResponse:
    context = {"error": text}
    return render(request, "conversations/_partials/send_error.html", context, status=status)
