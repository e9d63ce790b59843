"""The page of a conversation's largest blocks, for one that became too long for the model."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from conversations.library.access import load_owned_conversation
from conversations.reductions.largest_blocks import list_largest_blocks
from conversations.web.page_shell import build_page_context
from conversations.web.responses import require_user


@login_required
@require_safe
def page(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Show the list: as a page, or with htmx the list alone."""
    conversation = load_owned_conversation(require_user(request), public_id)
    context = {"conversation": conversation, "rows": list_largest_blocks(conversation)}
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "conversations/_partials/largest.html", context)
    context |= build_page_context(request, conversation)
    return render(request, "conversations/largest.html", context)
