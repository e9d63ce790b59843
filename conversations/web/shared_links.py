"""A chat's link for others: made, changed and revoked; and the list of all links of a person."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from conversations.library import shared_links
from conversations.library.access import load_owned_conversation
from conversations.library.conversations import LibraryError
from conversations.web.forms.log_in import read_peer
from conversations.web.forms.shared_links import ShareForm
from conversations.web.page_shell import add_notice, build_page_context, not_found_if_erased
from conversations.web.responses import read_next, require_user

if TYPE_CHECKING:
    from conversations.models import Conversation


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@not_found_if_erased()
def share(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Show the link of a chat and what it shows; a POST makes it, or changes the one there is."""
    conversation = load_owned_conversation(require_user(request), public_id)
    link = shared_links.find_link(conversation)
    has_later = link is not None and shared_links.has_later_turns(conversation, link.leaf)
    form = ShareForm(request.POST or None, link=link, has_later=has_later)
    if request.method != "POST" or not form.is_valid():
        return _render_dialog(request, conversation, form)
    try:
        shared_links.share_conversation(
            conversation=conversation,
            terms=form.read_terms(link),
            is_renewed=form.cleaned_data.get("is_renewed", False),
            peer=read_peer(request),
        )
    except LibraryError as error:
        form.add_error(None, error.text)
        return _render_dialog(request, conversation, form)
    if not request.htmx:  # type: ignore[attr-defined]
        add_notice(
            request, _("The link works now.") if link is None else _("The link was changed.")
        )
        return redirect("share", public_id)
    return _render_dialog(request, conversation, is_done=True)


@login_required
@require_POST
@not_found_if_erased()
def unshare(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Revoke the link of a chat."""
    user = require_user(request)
    conversation = load_owned_conversation(user, public_id)
    shared_links.revoke_link(conversation=conversation, actor=user, peer=read_peer(request))
    if request.htmx:  # type: ignore[attr-defined]
        return _render_dialog(request, conversation, is_done=True)
    add_notice(request, _("The link was revoked. Nobody can open it any more."))
    return redirect(read_next(request.POST) or reverse("share", args=[public_id]))


@login_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    links = shared_links.list_own_links(require_user(request))
    is_off = not shared_links.list_audiences()
    shown = [
        (link, "" if link.has_expired or is_off else _find_address(request, link)) for link in links
    ]
    context = build_page_context(request) | {"tab": "data", "links": shown, "is_off": is_off}
    return render(request, "conversations/settings/shared_links.html", context)


@login_required
@require_POST
def revoke_all(request: HttpRequest) -> HttpResponse:
    user = require_user(request)
    shared_links.revoke_links(owner=user, peer=read_peer(request))
    add_notice(request, _("All your links were revoked."))
    return redirect("shared_links")


def _render_dialog(
    request: HttpRequest,
    conversation: Conversation,
    form: ShareForm | None = None,
    *,
    is_done: bool = False,
) -> HttpResponse:
    """Show the link and its form: as a page, or with htmx as the content of a dialog."""
    if not shared_links.list_audiences():
        raise Http404("links are off")
    link = shared_links.find_link(conversation)
    if form is None:
        has_later = link is not None and shared_links.has_later_turns(conversation, link.leaf)
        form = ShareForm(link=link, has_later=has_later)
    chat = reverse("chat", args=[conversation.public_id])
    context: dict[str, object] = {
        "conversation": conversation,
        "link": link,
        "address": _find_address(request, link),
        "form": form,
        "is_done": is_done,
        "is_on_chat": urlsplit(request.headers.get("HX-Current-URL", "")).path == chat,
    }
    status = 400 if form.is_bound and form.errors else 200
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "conversations/_partials/share.html", context)
    context |= build_page_context(request, conversation)
    return render(request, "conversations/share.html", context, status=status)


def _find_address(request: HttpRequest, link: shared_links.OwnLink | None) -> str:
    if link is None or not link.token:
        return ""
    return request.build_absolute_uri(reverse("shared", args=[link.token]))
