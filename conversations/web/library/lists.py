"""Lists of conversations: all of them, the archived ones, the trash."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from conversations.conf import conf
from conversations.library.conversations import empty_trash
from conversations.library.erase import erase_due_conversations, is_erasure_pending
from conversations.library.sidebar import list_trash, read_sidebar
from conversations.log.legal_holds import list_held
from conversations.web.page_shell import add_notice, build_page_context, find_current
from conversations.web.responses import require_user


@login_required
@require_safe
def conversations(request: HttpRequest) -> HttpResponse:
    """Show a page of the list; with htmx only its rows, to append or in place of the sidebar's."""
    archived = request.GET.get("archived") == "1"
    after = request.GET.get("after", "")
    rows = read_sidebar(
        require_user(request), find_current(request), archived=archived, after=after
    )
    if htmx := request.htmx:  # type: ignore[attr-defined]
        context = {"rows": rows, "has_ids": htmx.target == "rows"}
        return render(request, "conversations/_partials/rows.html", context)
    context = {"rows": rows, "archived": archived, "is_later": bool(after)}
    return render(request, "conversations/list.html", build_page_context(request) | context)


@login_required
@require_safe
def trash(request: HttpRequest) -> HttpResponse:
    context = {"rows": list_trash(require_user(request)), "trash_days": conf.trash_days}
    return render(request, "conversations/trash.html", build_page_context(request) | context)


@login_required
@require_POST
def empty(request: HttpRequest) -> HttpResponse:
    """Erase everything in the trash now."""
    user = require_user(request)
    empty_trash(owner_id=user.pk)
    count = erase_due_conversations(owner_id=user.pk)
    notice = _("%d chats were erased.") % count
    held = list_held(user.pk).exclude(deleted_at=None).count()
    if held:
        notice += " " + _("Under a legal hold, and kept: %d.") % held
    if is_erasure_pending(owner_id=user.pk):
        notice += " " + _("What is still answering follows as soon as it has stopped.")
    add_notice(request, notice)
    return redirect("trash")
