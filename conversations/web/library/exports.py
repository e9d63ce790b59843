"""Downloads of conversations: one in a format, or all with the user's files in one archive.

In a record is what the model was sent of a file. The archive has every attached file as well, as it
was uploaded: of a document, the record has its text alone.
"""

from __future__ import annotations

import io
import logging
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from conversations.accounts.preferences import read_preferences
from conversations.context.view import wire
from conversations.files.attachment_display import list_file_names, read_owned_bytes
from conversations.library.access import load_owned_conversation
from conversations.library.folders import list_folders
from conversations.library.shared_links import export_links
from conversations.runtime.adapters import workspace_for
from conversations.saved_prompts.saved_prompts import export_prompts
from conversations.transfer.exports import EXPORT_FORMATS, list_exported, name_file, write_record
from conversations.web.responses import require_user
from conversations.web.streamed_downloads import stream_download
from tools.framework.errors import ToolError

if TYPE_CHECKING:
    from conversations.models import User

logger = logging.getLogger("agentweb.exports")


@login_required
@require_safe
def conversation(request: HttpRequest, public_id: UUID, form: str) -> HttpResponseBase:
    """Send one conversation as `md`, `html` or `json`, with context events if `events=1`."""
    found = load_owned_conversation(require_user(request), public_id)
    if form not in EXPORT_FORMATS:
        raise Http404("no such form")
    chosen = EXPORT_FORMATS[form]
    pieces = chosen.write(found, with_events=request.GET.get("events") == "1")
    name = name_file(found, form)
    return stream_download(request, (piece.encode() for piece in pieces), name, chosen.content_type)


@login_required
@require_safe
def everything(request: HttpRequest) -> HttpResponseBase:
    """Send all of the user's conversations, prompts and files as one archive."""
    user = require_user(request)
    with_events = request.GET.get("events") == "1"
    pieces = _write_archive(_list_members(user, with_events))
    name = f"agentweb-{timezone.now():%Y-%m-%d}.zip"
    return stream_download(request, pieces, name, "application/zip")


Content = Iterable[bytes]


def _list_members(user: User, with_events: bool) -> Iterator[tuple[str, Content]]:
    yield "account.json", [_write_account(user)]
    yield (
        "conversations.jsonl",
        (
            piece.encode()
            for found in list_exported(user)
            for piece in write_record(found, with_events=with_events)
        ),
    )
    for form in ("md", "html"):
        for found in list_exported(user):
            pieces = EXPORT_FORMATS[form].write(found, with_events=with_events)
            yield f"{form}/{name_file(found, form)}", (piece.encode() for piece in pieces)
    yield "prompts.json", [wire.encode(export_prompts(user.pk)).encode() + b"\n"]
    yield "links.json", [wire.encode(export_links(user)).encode() + b"\n"]
    for key, name in list_file_names(user):
        # The key keeps files of one name apart.
        yield f"attached/{str(key)[:8]}-{name}", _read_file(partial(read_owned_bytes, user, key))
    workspace = workspace_for(user.pk)
    for entry in workspace.entries():
        yield f"workspace/{entry.path}", _read_file(partial(workspace.read, entry.path))


def _write_account(user: User) -> bytes:
    facts = {
        "username": user.get_username(),
        "email": user.email,
        "first_name": user.first_name,
        "last_name": user.last_name,
        "date_joined": user.date_joined.isoformat(),
        "preferences": asdict(read_preferences(user.preferences)),
        "context_policy": user.policy,
        "folders": [row.name for row in list_folders(user)],
    }
    return wire.encode(facts).encode() + b"\n"


def _read_file(read: Callable[[], bytes]) -> Content:
    """Yield a file; one that was deleted or changed since it was listed becomes a note."""
    try:
        yield read()
    except (ToolError, OSError, Http404, ValueError) as error:
        logger.warning("a file is missing in an export", exc_info=error)
        yield b"This file could not be read when the archive was made.\n"


class _Sink(io.RawIOBase):
    """The file object that a ZipFile writes to; its content is taken out and sent."""

    def __init__(self) -> None:
        super().__init__()
        self.held = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.held += data
        return len(data)

    def taken(self) -> bytes:
        found = bytes(self.held)
        self.held.clear()
        return found


def _write_archive(files: Iterable[tuple[str, Content]]) -> Iterator[bytes]:
    """Yield a ZIP archive while it is written, one file after the other."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, content in files:
            member = zipfile.ZipInfo(name, _read_clock())
            # A member has its own compression setting, not the archive's.
            member.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(member, "w", force_zip64=True) as file:
                for piece in content:
                    file.write(piece)
                    yield sink.taken()
            yield sink.taken()
    yield sink.taken()


def _read_clock() -> tuple[int, int, int, int, int, int]:
    at = timezone.now()
    return at.year, at.month, at.day, at.hour, at.minute, at.second
