"""The pages of a person's workspace: folders, upload, download, move, delete.

Tools and people store the files, so none is served as a page of this site: a preview is escaped
text, and a download is an attachment without a media type, whatever its name.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from conversations.conf import conf
from conversations.files import workspace
from conversations.files.file_texts import clean_display_name, explain_file_error
from conversations.files.workspace import browse
from conversations.log.legal_holds import is_person_held
from conversations.web.library.files import CAREFUL
from conversations.web.page_shell import add_notice, build_page_context
from conversations.web.responses import require_user
from tools.documents import extract_text, has_parts
from tools.documents.text_files import decode_text_file
from tools.framework.errors import ToolError
from tools.workspace.paths import split_path

#: Characters of a file that its page shows.
MOST_SHOWN = 100_000
#: Files that one form may upload.
MOST_UPLOADS = 50


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """Show a folder, or redirect to the file that `path` names; a POST uploads files."""
    if request.method == "POST":
        return _store_uploads(request)
    path = request.GET.get("path", "")
    try:
        path = "/".join(split_path(path))
    except ToolError as error:
        return _render_folder(request, "", [explain_file_error(error)], 404)
    file = browse.find_live_file(require_user(request).pk, path) if path else None
    if file is not None:
        return redirect("workspace_file", file.public_id)
    return _render_folder(request, path, [])


def _render_folder(
    request: HttpRequest, path: str, errors: list[str], status: int = 200
) -> HttpResponse:
    user, quota = require_user(request), workspace.read_quota()
    folder = browse.read_folder_page(user, path, quota)
    if folder is None:
        gone = _("There is no file or folder “%s” any more; it was moved or deleted.") % path
        errors, status = [*errors, gone], 404
        folder = browse.read_folder_page(user, "", quota)
    context = build_page_context(request) | {
        "page": folder,
        "errors": errors,
        "trash_days": conf.trash_days,
    }
    context["most_uploads"] = MOST_UPLOADS
    return render(request, "conversations/workspace.html", context, status=status)


def _store_uploads(request: HttpRequest) -> HttpResponse:
    folder, replaces = request.POST.get("folder", ""), request.POST.get("replace") == "1"
    files = request.FILES.getlist("files")
    if not files:
        return _render_folder(request, _clean_path(folder), [_("Choose a file first.")], 400)
    if len(files) > MOST_UPLOADS:
        text = _("At most %d files are taken at once.") % MOST_UPLOADS
        return _render_folder(request, _clean_path(folder), [text], 400)
    taken, errors = 0, []
    for file in files:
        try:
            _store_file(require_user(request).pk, folder, file, replaces)
            taken += 1
        except ToolError as error:
            name = clean_display_name(file.name or "", "application/file")
            errors.append(f"{name}: {explain_file_error(error)}")
    if taken:
        notice = ngettext("%d file was added.", "%d files were added.", taken) % taken
        add_notice(request, notice)
    if errors:
        return _render_folder(request, _clean_path(folder), errors, 400)
    return _redirect_to_folder(folder)


def _store_file(owner_id: int, folder: str, file: UploadedFile[Any], replaces: bool) -> None:
    name = clean_display_name(file.name or "", "application/file")
    workspace.write_file(
        owner_id=owner_id,
        path=f"{folder}/{name}".lstrip("/"),
        # One byte more than allowed shows that it is too large.
        data=file.read(workspace.read_quota().max_file_bytes + 1),
        is_numbered=not replaces,
    )


@login_required
@require_safe
def file(request: HttpRequest, file_id: UUID) -> HttpResponse:
    """Show one file: its text, and what can be done with it."""
    return _render_file(request, file_id, "")


def _render_file(
    request: HttpRequest, file_id: UUID, error: str, status: int = 200
) -> HttpResponse:
    owner = require_user(request)
    found = browse.load_owned_file(owner, file_id)
    text, reason = "", ""
    try:
        text = _preview_text(
            found.path, workspace.read_object(found), str(require_user(request).pk)
        )
    except FileNotFoundError as lost:
        raise Http404("the bytes are gone") from lost
    except ToolError as refused:
        reason = explain_file_error(refused)
    names = found.path.split("/")
    context = build_page_context(request) | {
        "file": found,
        "name": names[-1],
        "above": [("/".join(names[: at + 1]), name) for at, name in enumerate(names[:-1])],
        "text": text[:MOST_SHOWN],
        "is_cut": len(text) > MOST_SHOWN,
        "reason": reason,
        "path": request.POST.get("to", found.path),
        "error": error,
    }
    return render(request, "conversations/workspace_file.html", context, status=status)


def _preview_text(path: str, data: bytes, person: str) -> str:
    if has_parts(data, path):
        return extract_text(data, path, person=person)
    return decode_text_file(data, path)


@login_required
@require_safe
def download(request: HttpRequest, file_id: UUID) -> HttpResponse:
    """Send the bytes of one of the user's own files as a download, never shown inline."""
    found = browse.load_owned_file(require_user(request), file_id)
    try:
        data = workspace.read_object(found)
    except (FileNotFoundError, ToolError) as error:
        raise Http404("the bytes are not there") from error
    headers = CAREFUL | {"Cache-Control": "private, no-store"}
    response = HttpResponse(data, content_type="application/octet-stream", headers=headers)
    name = found.path.rpartition("/")[2]
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    return response


@login_required
@require_POST
def move(request: HttpRequest) -> HttpResponse:
    """Move a file or a folder to another path."""
    path, to = request.POST.get("path", ""), request.POST.get("to", "").strip()
    user = require_user(request)
    try:
        workspace.move_files(owner_id=user.pk, path=path, to=to)
    except ToolError as error:
        found = browse.find_live_file(user.pk, _clean_path(path))
        if found is not None:
            return _render_file(request, found.public_id, explain_file_error(error), 400)
        return _render_folder(request, _clean_path(path), [explain_file_error(error)], 400)
    add_notice(request, _("Moved to “%s”.") % _clean_path(to))
    return _redirect_to_folder(_clean_path(to))


@login_required
@require_POST
def delete(request: HttpRequest) -> HttpResponse:
    """Move a file or a folder to the trash, with a link to undo that."""
    path = _clean_path(request.POST.get("path", ""))
    folder = path.rpartition("/")[0]
    try:
        batch = workspace.delete_files(owner_id=require_user(request).pk, path=path, is_folder=True)
    except ToolError as error:
        return _render_folder(request, "", [explain_file_error(error)], 404)
    undo = reverse("restore_files", args=[batch])
    add_notice(request, _("“%s” was deleted.") % path, undo=undo)
    is_left = (
        browse.read_folder_page(require_user(request), folder, workspace.read_quota()) is not None
    )
    return _redirect_to_folder(folder if is_left else "")


@login_required
@require_POST
def restore(request: HttpRequest, batch: UUID) -> HttpResponse:
    """Restore what was deleted together."""
    try:
        back = workspace.restore_files(owner_id=require_user(request).pk, batch=batch)
    except ToolError as error:
        return _render_folder(request, "", [explain_file_error(error)], 400)
    if not back:
        raise Http404("nothing of it is in the trash")
    if len(back) == 1:
        add_notice(request, _("“%(path)s” is back.") % {"path": back[0]})
    else:
        notice = ngettext("%(count)d file is back.", "%(count)d files are back.", len(back))
        add_notice(request, notice % {"count": len(back)})
    return _redirect_to_folder(back[0].rpartition("/")[0])


@login_required
@require_POST
def empty(request: HttpRequest) -> HttpResponse:
    """Erase the trash of files."""
    owner_id = require_user(request).pk
    if is_person_held(owner_id):
        add_notice(
            request, _("You are under a legal hold: deleted files stay until it is released.")
        )
    else:
        workspace.empty_file_trash(owner_id=owner_id)
        add_notice(request, _("The deleted files were erased."))
    return redirect("workspace")


def _clean_path(path: str) -> str:
    """Return a path in its stored form, or "" for one that is invalid."""
    try:
        return "/".join(split_path(path))
    except ToolError:
        return ""


def _redirect_to_folder(path: str) -> HttpResponse:
    query = f"?{urlencode({'path': path})}" if path else ""
    return redirect(f"{reverse('workspace')}{query}")
