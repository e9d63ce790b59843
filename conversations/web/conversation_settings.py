"""The settings of a conversation's next turns: the settings page, and the choice of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from conversations.accounts.preferences import read_preferences
from conversations.agent.events import ModelChanged
from conversations.budgets.notices import find_limits
from conversations.conf import conf
from conversations.library.access import load_owned_conversation
from conversations.live.publish import announce
from conversations.reductions.conversation_settings import change_model, change_settings
from conversations.reductions.model_choice import (
    ModelChoice,
    read_choice_of,
    read_model_choice,
)
from conversations.reductions.record_change import ManualChangeError
from conversations.web.forms.chat import describe_error
from conversations.web.forms.conversation import ConversationForm
from conversations.web.forms.model_choice import ModelChoiceForm
from conversations.web.page_shell import build_page_context, refuse_post
from conversations.web.responses import answer_post, require_user

if TYPE_CHECKING:
    from conversations.models import Conversation


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Show the settings or store new ones, with errors at their fields."""
    conversation = load_owned_conversation(require_user(request), public_id)
    form = ConversationForm(conversation, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            change_settings(conversation_id=conversation.pk, **form.settings)
        except ManualChangeError as error:
            form.add_error("model", error.text)
        else:
            async_to_sync(announce)(conversation.pk, ModelChanged())
            return redirect("chat", conversation.public_id)
    context = {"conversation": conversation, "form": form}
    context |= build_page_context(request, conversation)
    return render(
        request,
        "conversations/conversation_settings.html",
        context,
        status=400 if form.errors else 200,
    )


@login_required
@require_POST
def choose(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Store another model or level; the updated page arrives by the socket."""
    user = require_user(request)
    conversation = load_owned_conversation(user, public_id)
    form = ModelChoiceForm(user.pk, request.POST)
    if not form.is_valid():
        return _refuse_choice(request, conversation, describe_error(form))
    try:
        change_model(conversation_id=conversation.pk, **form.chosen)
    except ManualChangeError as error:
        return _refuse_choice(request, conversation, error.text)
    async_to_sync(announce)(conversation.pk, ModelChanged())
    return answer_post(request, conversation)


def _refuse_choice(request: HttpRequest, conversation: Conversation, text: str) -> HttpResponse:
    """Show why a choice was refused, and the choice still in force."""
    if not request.htmx:  # type: ignore[attr-defined]
        return refuse_post(request, conversation, text)
    context = {
        "conversation": conversation, "error": text, "choice": read_choice_of(conversation)
    }  # fmt: skip
    return render(request, "conversations/_partials/model_refused.html", context, status=400)


@login_required
@require_safe
def choose_first(request: HttpRequest) -> HttpResponse:
    """Show the levels that a new chat can choose with a model, and the limits of that model."""
    user, choice = require_user(request), read_requested_choice(request)
    away = read_preferences(user.preferences).put_away
    context = {"choice": choice, "limits": find_limits(user.pk, choice.model, put_away=away)}
    return render(request, "conversations/_partials/first_choice.html", context)


def read_requested_choice(request: HttpRequest) -> ModelChoice:
    """Return the choice of a new chat: from the request, else from the person's preferences."""
    user = require_user(request)
    form = ModelChoiceForm(user.pk, request.POST or request.GET)
    asked = form.cleaned_data if form.is_valid() else {"model": "", "effort": ""}
    models = [name for name, _ in form.fields["model"].choices]  # type: ignore[attr-defined]
    usual = read_preferences(user.preferences).model
    model = asked["model"] or (usual if usual and usual in models else conf.model)
    return read_model_choice(user.pk, model, asked["effort"])
