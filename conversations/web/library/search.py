"""The search page: a plain form, and results while typing with htmx."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from conversations.library.search import search_messages
from conversations.log.search_terms import MOST_QUERY_CHARS
from conversations.web.page_shell import build_page_context
from conversations.web.responses import require_user


@login_required
@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """Search the user's own messages and titles."""
    question = request.GET.get("q", "")[:MOST_QUERY_CHARS]
    archived = request.GET.get("archived") == "1"
    page = search_messages(
        require_user(request), question, archived=archived, after=request.GET.get("after", "")
    )
    context = {"question": question, "archived": archived, "page": page}
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "conversations/_partials/found.html", context)
    return render(request, "conversations/search.html", build_page_context(request) | context)
