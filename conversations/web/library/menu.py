"""The menu of a conversation: rename, star, archive, delete, restore, erase."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from conversations.agent.events import ChatDeleted
from conversations.conf import conf
from conversations.library import conversations
from conversations.library.access import is_stored, list_owned, load_owned_conversation
from conversations.library.erase import erase_due_conversations
from conversations.library.shared_links import list_audiences
from conversations.library.sidebar import build_row, load_deleted_conversation
from conversations.live.publish import announce
from conversations.runtime import dispatch
from conversations.web.page_shell import (
    add_notice,
    answer_change,
    build_page_context,
    not_found_if_erased,
)
from conversations.web.responses import require_user

if TYPE_CHECKING:
    from conversations.models import Conversation


@login_required
@require_safe
def menu(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Show the menu: as a page, or with htmx as the content of a dialog."""
    return _render_menu(request, load_owned_conversation(require_user(request), public_id))


def _render_menu(
    request: HttpRequest, conversation: Conversation, error: str = "", status: int = 200
) -> HttpResponse:
    context = {
        "row": build_row(conversation),
        "title": request.POST.get("title", conversation.title),
        "error": error,
        "trash_days": conf.trash_days,
        "can_share": bool(list_audiences()),
    }
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "conversations/_partials/menu.html", context)
    context |= build_page_context(request, conversation)
    return render(request, "conversations/menu.html", context, status=status)


@login_required
@require_POST
@not_found_if_erased()
def rename(request: HttpRequest, public_id: UUID) -> HttpResponse:
    conversation = load_owned_conversation(require_user(request), public_id)
    try:
        conversations.rename_conversation(
            conversation=conversation, title=request.POST.get("title", "")
        )
    except conversations.LibraryError as error:
        return _render_menu(request, conversation, error.text, 400)
    add_notice(request, _("Renamed."))
    return answer_change(request, conversation)


@login_required
@require_POST
@not_found_if_erased()
def star(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Star the conversation (`on=1`) or remove its star (`on=0`)."""
    conversation = load_owned_conversation(require_user(request), public_id)
    is_starred = request.POST.get("on", "1") == "1"
    try:
        conversations.star_conversation(conversation=conversation, is_starred=is_starred)
    except conversations.LibraryError as error:
        return _render_menu(request, conversation, error.text, 400)
    add_notice(request, _("Starred.") if is_starred else _("Star removed."))
    return answer_change(request, conversation)


@login_required
@require_POST
@not_found_if_erased()
def archive(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Archive the conversation (`on=1`) or put it back (`on=0`)."""
    conversation = load_owned_conversation(require_user(request), public_id)
    is_archived = request.POST.get("on", "1") == "1"
    conversations.archive_conversation(conversation=conversation, is_archived=is_archived)
    add_notice(request, _("Archived.") if is_archived else _("Back in the list."))
    return answer_change(request, conversation)


@login_required
@require_POST
@not_found_if_erased()
def delete(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Move the conversation to the trash, with a link to undo that; erase what is due at once."""
    conversation = load_owned_conversation(require_user(request), public_id)
    try:
        turn = conversations.delete_conversation(conversation=conversation)
    except conversations.LibraryError as error:
        add_notice(request, error.text)
        return answer_change(request, conversation)
    async_to_sync(announce)(conversation.pk, ChatDeleted())
    if turn is not None:
        dispatch.stop_turn(turn)
    if conversation.is_temporary or conf.trash_days <= 0:
        _erase_due(request, conversation)
    else:
        title, undo = build_row(conversation).title, reverse("bring_back", args=[public_id])
        add_notice(request, _("“%s” was deleted.") % title, undo=undo)
    return answer_change(request, conversation, gone=True)


@login_required
@require_POST
@not_found_if_erased()
def bring_back(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Restore a conversation from the trash and open it; one that is back already is opened."""
    user = require_user(request)
    if list_owned(user).filter(public_id=public_id).exists():
        return _lead_to(request, "chat", public_id)
    try:
        conversation = load_deleted_conversation(user, public_id)
        conversations.restore_conversation(conversation=conversation)
    except (Http404, ObjectDoesNotExist):
        if not request.htmx:  # type: ignore[attr-defined]
            raise
        # An open page of the chat stays, with what was written there.
        error = _("It was erased since, and nothing brings it back.")
        page = "conversations/_partials/send_error.html"
        return render(request, page, {"error": error}, status=404)
    except conversations.LibraryError as error:
        add_notice(request, error.text)
        return _lead_to(request, "trash")
    return _lead_to(request, "chat", public_id)


def _lead_to(request: HttpRequest, name: str, *values: object) -> HttpResponse:
    """Go on to a page; htmx would swap in what a plain redirect leads to."""
    if request.htmx:  # type: ignore[attr-defined]
        return HttpResponseClientRedirect(reverse(name, args=values))
    return redirect(name, *values)


@login_required
@require_POST
def erase(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Erase one conversation of the trash now."""
    user = require_user(request)
    conversation = load_deleted_conversation(user, public_id)
    try:
        conversations.empty_trash(owner_id=user.pk, public_id=conversation.public_id)
    except conversations.LibraryError as error:
        add_notice(request, error.text)
        return redirect("trash")
    _erase_due(request, conversation)
    return redirect("trash")


def _erase_due(request: HttpRequest, conversation: Conversation) -> None:
    """Erase what the user has due, and say what became of this conversation."""
    erase_due_conversations(owner_id=conversation.owner_id)
    title = build_row(conversation).title
    if is_stored(conversation):
        add_notice(request, _("“%s” will be erased as soon as its answer has stopped.") % title)
    else:
        add_notice(request, _("“%s” was erased.") % title)
