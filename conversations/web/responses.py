"""Shared by views: the user, the response to a post, the way to another page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect

if TYPE_CHECKING:
    from conversations.models import Conversation, User


def require_user(request: HttpRequest) -> User:
    """Return the user of a view that requires a log-in."""
    user = request.user
    assert not isinstance(user, AnonymousUser)  # noqa: S101
    return user


def read_next(values: Mapping[str, str]) -> str:
    """Return `next` of a query or form, the page to go on to; "" if it is no path of this site."""
    wanted = values.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts=None)
    return wanted if is_ours and wanted.startswith("/") else ""


def redirect_post(request: HttpRequest, url: str) -> HttpResponse:
    """Send the browser to another page, with and without htmx."""
    return HttpResponseClientRedirect(url) if request.htmx else redirect(url)  # type: ignore[attr-defined]


def send_elsewhere(request: HttpRequest, page: str) -> HttpResponse:
    """Send the browser to another page instead of doing what it asked for.

    A script would follow a redirect unseen and take that page for its answer: what it sent would
    count as done. It gets a 409, with the address for htmx.
    """
    if not request.headers.get("HX-Request"):
        return redirect(page)
    return HttpResponse(status=409, headers={"HX-Redirect": resolve_url(page)})


def answer_post(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Respond to a post whose effect arrives by the socket; without htmx redirect to the chat."""
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("chat", conversation.public_id)
    return render(request, "conversations/_partials/sent.html", {"conversation": conversation})
