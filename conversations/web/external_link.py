"""The way out of a chat: a link in an answer opens at once, unless it may carry words of the chat.

A link is written by the model, which may have been told what to put in it. The script of the page
sends every click on an outside link here. A visit that does not come from a page of the site itself
is always shown where it leads, so this address sends nobody anywhere unseen.
"""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.views.decorators.http import require_safe

from conversations.library.access import load_owned_conversation
from conversations.rendering.links import is_allowed, read_host
from conversations.toolbox.information_flow import InformationFlow
from conversations.transcript.questions import describe_source, name_words
from conversations.web.responses import require_user

LONGEST_URL = 8_000


@login_required
@require_safe
def page(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Open the link `to`, or show who would be told which words by opening it."""
    conversation = load_owned_conversation(require_user(request), public_id)
    url = request.GET.get("to", "")
    host = read_host(url)
    context: dict[str, object]
    if len(url) > LONGEST_URL or not host or not is_allowed(url):
        context = {"conversation": conversation}
        return render(
            request, "conversations/external_link.html", context, status=400 if url else 200
        )
    words, unread = InformationFlow(conversation).check_link(url)
    if not words and not unread and request.headers.get("Sec-Fetch-Site") == "same-origin":
        response: HttpResponse = HttpResponseRedirect(url)
    else:
        unread = tuple(dict.fromkeys(map(describe_source, unread)))
        shown = {"url": url, "host": host, "words": name_words(words), "unread": unread}
        context = shown | {"conversation": conversation}
        response = render(request, "conversations/external_link.html", context)
    response["Referrer-Policy"] = "no-referrer"
    return response
