"""The page that asks staff why they read another person's conversation, before it is shown."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from conversations.accounts.reading_log import CONTENT
from conversations.accounts.reading_reasons import keep_reason
from conversations.library.access import load_any_conversation
from conversations.web.forms.reading_reason import ReasonForm
from conversations.web.responses import read_next, require_user


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Ask for the reason, keep it for the session, and go on to where the reader was."""
    reader = require_user(request)
    if not reader.is_staff:
        raise Http404("not for this reader")
    conversation = load_any_conversation(public_id)
    if conversation.owner_id != reader.pk and not reader.has_perm(CONTENT):
        raise Http404("not for this reader")
    form = ReasonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        keep_reason(request.session, conversation.public_id, form.cleaned_data["reason"])
        return redirect(read_next(request.GET) or "admin:index")
    status = 400 if form.errors else 200
    context = {"form": form, "number": str(conversation.public_id)[:8]}
    return render(request, "conversations/reading_reason.html", context, status=status)
