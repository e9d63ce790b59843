"""Uploads of conversations: each is imported completely or not at all, and reported."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from conversations.conf import conf
from conversations.transfer.unpacking import UploadError
from conversations.transfer.uploads import import_upload
from conversations.web.library.data import render_data_page
from conversations.web.responses import require_user


@login_required
@require_POST
def upload(request: HttpRequest) -> HttpResponse:
    """Import the conversations of a file; those imported before are left as they are."""
    file = request.FILES.get("file")
    if file is None or file.file is None:
        return render_data_page(request, {"import_error": _("Choose a file first.")}, 400)
    try:
        report = import_upload(
            user=require_user(request), file=file.file, size=file.size or 0, model=conf.model
        )
    except UploadError as error:
        return render_data_page(request, {"import_error": error.text}, 400)
    return render_data_page(request, {"report": report})
