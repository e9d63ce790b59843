"""Folders: their pages, and the posts of the list, of a folder's menu and of a chat's."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from conversations.library import folders
from conversations.library.access import load_owned_conversation
from conversations.library.conversations import LibraryError
from conversations.library.sidebar import build_row, read_folder, read_folder_row
from conversations.web.page_shell import (
    add_notice,
    answer_change,
    answer_folder_change,
    build_page_context,
    find_current,
    not_found_if_erased,
)
from conversations.web.responses import read_next, require_user

if TYPE_CHECKING:
    from conversations.models import Conversation, Folder


@login_required
@require_safe
def folder(request: HttpRequest, folder_id: UUID) -> HttpResponse:
    """The page of a folder with all of its chats; with htmx its menu, or more rows."""
    user = require_user(request)
    found = folders.find_folder(user, folder_id)
    after = request.GET.get("after", "")
    if request.htmx and not after:  # type: ignore[attr-defined]
        return _render_folder(request, found)
    rows = read_folder(user, found, find_current(request), after=after)
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "conversations/_partials/rows.html", {"rows": rows})
    return _render_folder(request, found, shown={"rows": rows, "is_later": bool(after)})


def _render_folder(
    request: HttpRequest, found: Folder, error: str = "", shown: dict[str, object] | None = None
) -> HttpResponse:
    context = {
        "folder": found,
        "name": request.POST.get("name", found.name),
        "returning": folders.count_returning(found),
        "error": error,
    }
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "conversations/_partials/folder_menu.html", context)
    context |= shown or {"rows": read_folder(require_user(request), found)}
    context |= build_page_context(request)
    return render(request, "conversations/folder.html", context, status=400 if error else 200)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """Make a folder."""
    if request.method != "POST":
        return _render_new(request)
    try:
        made = folders.add_folder(
            owner_id=require_user(request).pk, name=request.POST.get("name", "")
        )
    except LibraryError as error:
        return _render_new(request, error.text)
    add_notice(request, _("The folder “%s” was made.") % made.name)
    return answer_folder_change(request, reverse("folder", args=[made.public_id]))


def _render_new(request: HttpRequest, error: str = "") -> HttpResponse:
    context: dict[str, object] = {"name": request.POST.get("name", ""), "error": error}
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "conversations/_partials/folder_new.html", context)
    context |= build_page_context(request)
    page = "conversations/folder_new.html"
    return render(request, page, context, status=400 if error else 200)


@login_required
@require_POST
def rename(request: HttpRequest, folder_id: UUID) -> HttpResponse:
    found = folders.find_folder(require_user(request), folder_id)
    try:
        with not_found_if_erased():
            folders.rename_folder(folder=found, name=request.POST.get("name", ""))
    except LibraryError as error:
        return _render_folder(request, found, error.text)
    add_notice(request, _("Renamed."))
    return answer_folder_change(request, reverse("folder", args=[folder_id]))


@login_required
@require_POST
def delete(request: HttpRequest, folder_id: UUID) -> HttpResponse:
    """Delete a folder; its chats go back to the list."""
    found = folders.find_folder(require_user(request), folder_id)
    try:
        folders.delete_folder(folder=found)
    except LibraryError as error:
        return _render_folder(request, found, error.text)
    add_notice(request, _("The folder “%s” was deleted; its chats are kept.") % found.name)
    own = reverse("folder", args=[folder_id])
    return answer_folder_change(request, reverse("list"), gone=own)


@login_required
@require_POST
def open_or_close(request: HttpRequest, folder_id: UUID) -> HttpResponse:
    """Open a folder in the list (`on=1`) or close it (`on=0`); with htmx return it alone."""
    user = require_user(request)
    is_open = request.POST.get("on", "1") == "1"
    folders.open_folder(folder=folders.find_folder(user, folder_id), is_open=is_open)
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect(read_next(request.POST) or reverse("folder", args=[folder_id]))
    row = read_folder_row(user, folders.find_folder(user, folder_id), find_current(request))
    return render(request, "conversations/_partials/folder.html", {"folder": row})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def move(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Put a chat into a folder, a new one if a name is given, or out of its folder."""
    user = require_user(request)
    conversation = load_owned_conversation(user, public_id)
    if conversation.is_temporary:
        raise Http404("it is in no list")
    if request.method != "POST":
        return _render_move(request, conversation)
    try:
        with not_found_if_erased():
            chosen = _move(request, conversation)
    except LibraryError as error:
        return _render_move(request, conversation, error.text)
    if chosen is None:
        add_notice(request, _("The chat is in no folder now."))
    else:
        add_notice(request, _("The chat is in the folder “%s” now.") % chosen.name)
    return answer_change(request, conversation)


def _move(request: HttpRequest, conversation: Conversation) -> Folder | None:
    """Move a chat to what was chosen; raises LibraryError, Http404 for a folder of nobody's."""
    name, wanted = request.POST.get("name", ""), request.POST.get("folder", "")
    if name.strip():
        return folders.move_to_new_folder(conversation=conversation, name=name)
    try:
        chosen = folders.find_folder(require_user(request), UUID(wanted)) if wanted else None
    except ValueError as error:
        raise Http404("no such folder") from error
    folders.move_conversation(conversation=conversation, folder=chosen)
    return chosen


def _render_move(request: HttpRequest, conversation: Conversation, error: str = "") -> HttpResponse:
    context = {
        "row": build_row(conversation),
        "folders": folders.list_folders(require_user(request)),
        "chosen": conversation.folder_id,
        "name": request.POST.get("name", ""),
        "error": error,
    }
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "conversations/_partials/move.html", context)
    context |= build_page_context(request, conversation)
    return render(request, "conversations/move.html", context, status=400 if error else 200)
