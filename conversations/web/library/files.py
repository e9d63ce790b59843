"""Attachments: uploaded before they are sent, shown to their owner only, removed while unsent.

An upload is never served as a page of this site: only images are shown inline, everything else is a
download, and the policy of each response forbids it to run, load or embed anything. A file never
changes, so browsers may cache it; proxies may not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from conversations.context.tokens.images import TYPES as IMAGES
from conversations.context.tokens.media import MOST_BYTES, TEXT
from conversations.files import attachment_display, attachments
from conversations.files.attached_bytes import decode_data
from conversations.files.attachments import AttachmentError
from conversations.files.file_texts import format_megabytes
from conversations.log.legal_holds import is_person_held
from conversations.web.page_shell import add_notice, build_page_context
from conversations.web.responses import require_user

if TYPE_CHECKING:
    from conversations.models import Attachment

CAREFUL = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, max-age=31536000, immutable",
}


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def files(request: HttpRequest) -> HttpResponse:
    """Show the user's files; a POST stores one and returns it as it waits in the composer."""
    if request.method == "POST":
        return _store_upload(request)
    page = attachment_display.list_files(require_user(request), request.GET.get("after", ""))
    context = build_page_context(request) | {"page": page, "is_later": "after" in request.GET}
    return render(request, "conversations/files.html", context)


def _store_upload(request: HttpRequest) -> HttpResponse:
    user = require_user(request)
    file = request.FILES.get("file")
    if file is None:
        return _refuse(request, _("Choose a file first."), 400)
    if (file.size or 0) > MOST_BYTES:
        text = _("The file is too big: at most %s are taken.") % format_megabytes(MOST_BYTES)
        return _refuse(request, text, 413)
    try:
        kept = attachments.store_attachment(
            owner_id=user.pk,
            name=file.name or "",
            data=file.read(MOST_BYTES + 1),
        )
    except AttachmentError as error:
        return _refuse(request, error.text, 400)
    context = {"files": attachment_display.list_unsent(user, [kept.public_id])}
    return render(request, "conversations/_partials/waiting.html", context)


def _refuse(request: HttpRequest, text: str, status: int) -> HttpResponse:
    context = {"error": text}
    return render(request, "conversations/_partials/file_error.html", context, status=status)


@login_required
@require_safe
def waiting(request: HttpRequest) -> HttpResponse:
    """Return those of the requested files that are still unsent."""
    ids = []
    for text in request.GET.getlist("id")[: attachment_display.PAGE]:
        try:
            ids.append(UUID(text))
        except ValueError:
            continue  # The ids come from a draft in the browser; unknown ones are not shown.
    context = {"files": attachment_display.list_unsent(require_user(request), ids)}
    return render(request, "conversations/_partials/waiting.html", context)


@login_required
@require_safe
def file(request: HttpRequest, file_id: UUID) -> HttpResponse:
    """Send the bytes of one of the user's own files."""
    return build_file_response(
        attachment_display.load_owned_attachment(require_user(request), file_id)
    )


def build_file_response(found: Attachment) -> HttpResponse:
    """Return the bytes of a file: an image to show, anything else to store."""
    is_image = found.media_type in IMAGES
    kind = "text/plain; charset=utf-8" if found.media_type == TEXT else found.media_type
    if found.ending:
        kind = "application/octet-stream"
    response = HttpResponse(decode_data(found), content_type=kind, headers=CAREFUL)
    shown = content_disposition_header(not is_image, found.name)
    response["Content-Disposition"] = shown or "attachment"
    return response


@login_required
@require_safe
def text(request: HttpRequest, file_id: UUID) -> HttpResponse:
    """Show what the model is sent of a file of the user."""
    found, sent = attachment_display.load_sent_text(require_user(request), file_id)
    context = build_page_context(request) | {"file": found, "text": sent}
    return render(request, "conversations/file_text.html", context)


@login_required
@require_POST
def remove(request: HttpRequest, file_id: UUID) -> HttpResponse:
    """Remove a file that was not sent."""
    found = attachment_display.load_owned_attachment(require_user(request), file_id)
    is_gone = attachments.drop_attachment(attachment=found)
    if request.POST.get("page") != "files":
        return HttpResponse(status=204 if is_gone else 409)
    if is_gone:
        add_notice(request, _("The file was removed."))
    elif found.conversation_id or not is_person_held(found.owner_id):
        add_notice(request, _("This file was sent; it goes with its chat."))
    else:
        add_notice(request, _("You are under a legal hold: the file stays until it is released."))
    return redirect("files")
