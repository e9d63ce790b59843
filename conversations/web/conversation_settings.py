"""The settings page of a conversation: what its next turns run with."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from conversations.library.access import load_owned_conversation
from conversations.reductions.conversation_settings import change_settings
from conversations.reductions.record_change import ManualChangeError
from conversations.web.forms.conversation import ConversationForm
from conversations.web.responses import require_user


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
            return redirect("chat", conversation.public_id)
    context = {"conversation": conversation, "form": form}
    return render(request, "conversations/tuning.html", context, status=400 if form.errors else 200)
