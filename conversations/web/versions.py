"""The posts about versions: answer again, edit, show another version, continue, fork.

With htmx the response is empty: the turn and its path arrive by the socket, in this tab as in all
others. Without htmx the page is shown again at the turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRedirect

from conversations.agent.events import PathChanged
from conversations.library.access import load_owned_turn
from conversations.live.publish import announce
from conversations.log.tree import is_near
from conversations.runtime import dispatch
from conversations.transcript.prompt_editor import read_editable_prompt
from conversations.turns.forks import fork_conversation
from conversations.turns.prompts import SendError
from conversations.turns.versions import continue_turn, edit_prompt, regenerate_answer, show_version
from conversations.web.forms.chat import EditForm, VersionForm, describe_error
from conversations.web.page_shell import (
    build_page_context,
    not_found_if_erased,
    refuse_post,
)
from conversations.web.responses import answer_post, redirect_post, require_user

if TYPE_CHECKING:
    from conversations.models import Turn

Act = Callable[[], "Turn"]


@login_required
@require_POST
def retry(request: HttpRequest, public_id: UUID, number: int) -> HttpResponse:
    """Answer the prompt of a turn once more, however it ended."""
    turn = load_owned_turn(require_user(request), public_id, number)
    form = VersionForm(request.POST)
    if not form.is_valid():
        return refuse_post(request, turn.conversation, describe_error(form))
    name = form.cleaned_data["client_id"]
    return _answer_version(request, turn, lambda: regenerate_answer(turn=turn, client_id=name))


@login_required
@require_POST
def continue_answer(request: HttpRequest, public_id: UUID, number: int) -> HttpResponse:
    """Continue the cut answer of the last turn."""
    turn = load_owned_turn(require_user(request), public_id, number)
    return _answer_version(request, turn, lambda: continue_turn(turn=turn))


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, public_id: UUID, number: int) -> HttpResponse:
    """Show the editor of a prompt, in place or as a page; a POST sends it as a new version."""
    turn = load_owned_turn(require_user(request), public_id, number)
    found = read_editable_prompt(turn)
    if found is None:
        raise Http404("nothing to edit")
    if request.method == "POST":
        form = EditForm(request.POST, [part.place for part in found.parts])
        if not form.is_valid():
            return refuse_post(request, turn.conversation, describe_error(form))
        fields = form.cleaned_data
        return _answer_version(request, turn, lambda: edit_prompt(turn=turn, **fields))
    context = {"conversation": turn.conversation, "draft": found, "client_id": uuid4()}
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "conversations/_partials/editor.html", context)
    context |= build_page_context(request, turn.conversation)
    return render(request, "conversations/edit.html", context)


@login_required
@require_POST
def show(request: HttpRequest, public_id: UUID, number: int) -> HttpResponse:
    """Show the path through another version of a turn."""
    turn = load_owned_turn(require_user(request), public_id, number)
    return _answer_version(request, turn, lambda: show_version(turn=turn), goal=turn)


@login_required
@require_POST
def fork(request: HttpRequest, public_id: UUID, number: int) -> HttpResponse:
    """Fork: continue from a turn in a new conversation."""
    turn = load_owned_turn(require_user(request), public_id, number)
    try:
        with not_found_if_erased():
            copy = fork_conversation(turn=turn)
    except SendError as error:
        return refuse_post(request, turn.conversation, error.text, 409)
    return redirect_post(request, reverse("chat", args=[copy.public_id]))


def _answer_version(
    request: HttpRequest, turn: Turn, act: Act, goal: Turn | None = None
) -> HttpResponse:
    """Make or choose a version and publish it; `goal` is the turn to show the reader."""
    conversation = turn.conversation
    try:
        found = act()
    except SendError as error:
        return refuse_post(request, conversation, error.text, 409)
    async_to_sync(announce)(conversation.pk, PathChanged())
    if found.is_live:
        dispatch.wake_turn(found)
    conversation.refresh_from_db()
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect(_find_address(goal or found))
    if goal is not None and not is_near(conversation, goal.number):
        return HttpResponseClientRedirect(_find_address(goal))
    return answer_post(request, conversation)


def _find_address(turn: Turn) -> str:
    """Return the address of a turn's prompt in the chat."""
    chat = reverse("chat", args=[turn.conversation.public_id])
    prompt = turn.messages.filter(kind="prompt").values_list("seq", flat=True).first()
    return f"{chat}?m={prompt}#m-{prompt}" if prompt else chat
