"""The page of a link: a chat to read, for whoever the link lets in, and the files that it shows.

It has no script and none of what is around a chat. A link that lets nobody in is answered like one
that never was, and a stranger's is counted; where the site has no links for strangers, they are
sent to the log-in whatever the link.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from conversations.accounts.throttle import LogInThrottled, count_unknown_link
from conversations.conf import conf
from conversations.library.access import LogInNeeded, load_shared_link
from conversations.library.shared_links import record_opening
from conversations.library.shared_page import load_shared_file, read_shared_page
from conversations.web.forms.log_in import describe_link_wait, read_peer
from conversations.web.library.files import build_file_response
from conversations.web.log_in import answer_throttled

if TYPE_CHECKING:
    from conversations.models import SharedLink

HEADERS = {
    "X-Robots-Tag": "noindex, nofollow, noarchive",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-store",
}
#: Decimal digits of the number of a turn.
MOST_DIGITS = 9


def _for_readers(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Let in whom the link lets in; the view gets the link beside its token."""

    @require_safe
    def read(request: HttpRequest, token: str, **named: Any) -> HttpResponse:
        try:
            link = load_shared_link(token, is_logged_in=request.user.is_authenticated)
            return view(request, link, token, **named)
        except LogInNeeded:
            return redirect_to_login(request.get_full_path())
        except Http404:
            return _answer_missing(request)

    @wraps(view)
    def answer(request: HttpRequest, token: str, **named: Any) -> HttpResponse:
        is_stranger = not request.user.is_authenticated
        is_closed = is_stranger and conf.sharing != "public"
        response = (
            redirect_to_login(request.get_full_path())
            if is_closed
            else read(request, token, **named)
        )
        for name, value in HEADERS.items():
            response.headers[name] = value
        return response

    return answer


@_for_readers
def page(request: HttpRequest, link: SharedLink, token: str) -> HttpResponse:
    """Show what is shared, from its beginning or `after` a turn."""
    after = request.GET.get("after", "")
    number = int(after) if after.isdecimal() and len(after) <= MOST_DIGITS else 0
    shown = read_shared_page(link, number, partial(_address_file, token))
    is_owner = request.user.pk == link.conversation.owner_id
    if request.method == "GET" and not number and not is_owner:
        record_opening(link)
    context = {"page": shown, "token": token, "number": number, "is_owner": is_owner}
    return render(request, "conversations/shared.html", context | {"link": link})


@_for_readers
def file(request: HttpRequest, link: SharedLink, token: str, file_id: UUID) -> HttpResponse:
    """Send the bytes of a file of a prompt that is shared."""
    return build_file_response(load_shared_file(link, file_id))


def _address_file(token: str, file_id: str) -> str:
    return reverse("shared_file", args=[token, file_id])


def _answer_missing(request: HttpRequest) -> HttpResponse:
    """Answer a link that lets nobody in, whatever the reason; count a stranger's."""
    if not request.user.is_authenticated:
        try:
            count_unknown_link(peer=read_peer(request))
        except LogInThrottled as error:
            return answer_throttled(request, error.seconds, describe_link_wait(error.seconds))
    return render(request, "conversations/shared_gone.html", status=404)
