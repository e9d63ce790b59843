"""Texts about files for people, and names of files that are safe to show."""

from __future__ import annotations

import re
import unicodedata

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from conversations.context.tokens import media
from conversations.context.tokens.media import MediaError
from conversations.rendering.numbers import write_number
from tools.framework.errors import (
    LockedFileError,
    OldFormatError,
    OutlookMailError,
    PathRefusedError,
    ToolError,
    WorkspaceBusyError,
)
from tools.workspace.paths import JOINERS

MOST_NAME = 120
#: What a message takes, for people.
TAKEN = gettext_lazy(
    "images (PNG, JPEG, GIF, WebP), PDF, Word, Excel and PowerPoint files, mails (EML), HTML, CSV"
    " and other texts"
)
_ENDINGS = {"image/jpeg": "jpg", "text/plain": "txt"}
#: Control and formatting characters, which are invisible or reverse the direction of a line.
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
#: A joiner does something only between signs of scripts that have one; alone it hides.
_JOINING = re.compile(rf"(?<=[^\x00-\x7f{JOINERS}])[{JOINERS}](?=[^\x00-\x7f{JOINERS}])")


def explain_media_error(error: MediaError) -> str:
    match error.code:
        case "empty":
            return _("The file is empty.")
        case "large":
            most = format_megabytes(error.number)
            return _("The file is too big: of this kind at most %s are taken.") % most
        case "pixels":
            words = _("The image has a side of %(side)s pixels; at most %(most)s are taken.")
            sides = {"side": write_number(error.number), "most": write_number(media.MOST_SIDE)}
            return words % sides
        case "pages":
            words = _("The PDF has %(pages)s pages; at most %(most)s are taken.")
            most = write_number(media.MOST_IN_LARGE)
            return words % {"pages": write_number(error.number), "most": most}
        case "no_text":
            return _("There is no text in the file; what its pictures show is not read.")
        case "locked":
            return _("The PDF is encrypted; save it without a password first.")
        case "broken":
            return _(
                "The file begins like an image but its size cannot be read; it may be damaged."
            )
        case _:
            return _("Files of this kind are not taken; %(kinds)s are.") % {"kinds": TAKEN}


def explain_refusal(error: ToolError) -> str:
    """Say to a person why the text of a file was not read; the error's own text is the model's."""
    match error:
        case LockedFileError():
            return _("The file is locked with a password; save it without one first.")
        case OldFormatError():
            return _("This is an Office file of an old kind; save it as DOCX, XLSX or PPTX first.")
        case OutlookMailError():
            return _("This is a mail of Outlook; save it as EML first.")
        case WorkspaceBusyError():
            return _("Too many files are being read now; try again in a moment.")
        case _:
            return _(
                "The file is not read: it is no DOCX, XLSX or PPTX, it could not be read within the"
                " limits of time and memory, or it is damaged."
            )


def explain_file_error(error: ToolError) -> str:
    """Say to a person why a file of theirs was not stored, moved or shown."""
    if isinstance(error, PathRefusedError) and error.reason != "no_path":
        words = _("The path %(path)s is refused: %(reason)s.")
        return words % {**error.values, "reason": _explain_path(error.reason)}
    values = {
        name: write_number(value) if isinstance(value, int) else value
        for name, value in error.values.items()
    }
    words = _list_file_words().get(error.reason, "")
    return words % values if words else explain_refusal(error)


def _explain_path(reason: str) -> str:
    words = {
        "absolute": _("it is absolute; paths start at the workspace, like notes/plan.md"),
        "home": _("there is no home folder; paths start at the workspace"),
        "invisible": _("it has control or invisible characters"),
        "backslash": _("folders are separated by /, not by a backslash"),
        "long_path": _("it is too long"),
        "deep": _("it has too many folders"),
        "above": _("'..' is not allowed; paths stay inside the workspace"),
        "ending": _("a name must not end with a dot or a space"),
        "long_name": _("a name is too long"),
        "reserved": _("a name in it is reserved"),
    }
    return words[reason]


def _list_file_words() -> dict[str, str]:
    return {
        "no_path": _("A file path is needed, like notes/plan.md."),
        "big_file": _("A file may have at most %(most)s bytes, this has %(size)s."),
        "full": _(
            "The workspace is full: it would hold %(size)s of at most %(most)s bytes. Write less,"
            " or delete files that are not needed."
        ),
        "many_files": _(
            "The workspace is full: it may hold at most %(most)s files. Replace or delete one"
            " instead."
        ),
        "busy": _("Too much is being written at once; try again in a moment."),
        "held": _(
            "The workspace is full, deleted files included, and none may be discarded: its owner"
            " is under a legal hold."
        ),
        "cleared": _("The workspace was cleared while the file was written."),
        "file": _("%(path)s is a file, not a folder."),
        "folder": _("%(path)s is a folder."),
        "itself": _("%(path)s cannot be moved to itself or into itself."),
        "taken": _("There is a file %(path)s already; delete or move it first."),
        "missing": _("There is no file %(path)s in the workspace."),
        "damaged": _("%(path)s was changed from outside or is damaged; it is not read."),
        "binary": _("%(path)s is a binary file (%(size)s bytes), not text."),
    }


def format_megabytes(size: int) -> str:
    return f"{size / 1_000_000:.1f}".removesuffix(".0") + " MB"


def clean_display_name(name: str, media_type: str) -> str:
    """Return a name that can be shown: no path, nothing that hides in it, bounded, not empty."""
    last = re.split(r"[/\\]", name)[-1]
    joins = {found.start() for found in _JOINING.finditer(last)}
    seen = "".join(
        c for at, c in enumerate(last) if at in joins or unicodedata.category(c) not in _UNSEEN
    )
    clean = " ".join(seen.split()).strip(". ")
    if len(clean) > MOST_NAME:
        stem, dot, ending = clean.rpartition(".")
        keeps = bool(dot) and len(ending) <= 8
        clean = f"{stem[: MOST_NAME - 10]}….{ending}" if keeps else clean[: MOST_NAME - 1] + "…"
    ending = _ENDINGS.get(media_type, media_type.rpartition("/")[2])
    return clean or f"file.{ending or 'txt'}"
