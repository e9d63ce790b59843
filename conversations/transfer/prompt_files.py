"""Prompts in an uploaded file: those of an archive of ours, or an export of Open WebUI.

Both are a list of objects with a command. Ours have `title` and `text` (saved_prompts); Open WebUI
calls the text `content`, and newer versions of it call the title `name`. What cannot be kept is
named with its reason, and the others are imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from django.utils.translation import gettext as _

from conversations.models import User
from conversations.models.saved_prompts import MOST_COMMAND, MOST_TITLE
from conversations.rendering.numbers import write_number
from conversations.saved_prompts.saved_prompts import MOST_TEXT, Wording, import_prompts
from conversations.saved_prompts.variables import VariableError, parse_prompt
from conversations.transfer.record_fields import clean_text, clean_title
from conversations.transfer.unpacking import UploadError, is_archive, read_archived

ARCHIVED = "prompts.json"
#: Bytes of a file, and prompts of it that are read.
MOST_BYTES, MOST_READ = 20_000_000, 1_000
#: Refused prompts that the report names.
NAMED = 50


@dataclass(slots=True)
class PromptReport:
    """How many were added, and were here already; and the name and reason of those refused."""

    added: int = 0
    again: int = 0
    refused: int = 0
    #: A reason is a code or what is wrong with a variable.
    problems: list[tuple[str, str | VariableError]] = field(default_factory=list)

    def refuse(self, name: str, reason: str | VariableError) -> None:
        self.refused += 1
        if len(self.problems) < NAMED:
            self.problems.append((name, reason))


def import_prompt_file(*, user: User, file: IO[bytes]) -> PromptReport:
    """Add the prompts of a file to the person's own; raises UploadError when there are none."""
    if is_archive(file):
        text = read_archived(file, ARCHIVED, most=MOST_BYTES)
        if text is None:
            raise UploadError("none", _("The archive has no prompts.json in it."))
    else:
        text = file.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        words = _("The file has more than %(most)s MB.")
        raise UploadError("too_big", words % {"most": write_number(MOST_BYTES // 1_000_000)})
    report = PromptReport()
    wordings = list(_read_wordings(_read_list(text), report))
    for wording, end in zip(
        wordings, import_prompts(owner_id=user.pk, wordings=wordings), strict=True
    ):
        if end == "full":
            report.refuse(wording.title, end)
        else:
            report.added += end == "added"
            report.again += end == "again"
    return report


def _read_list(text: bytes) -> list[Any]:
    try:
        found = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UploadError("no_json", _("The file is not JSON.")) from error
    rows = [found] if isinstance(found, dict) else found
    if not isinstance(rows, list) or not any(_is_prompt(row) for row in rows):
        raise UploadError("none", _("There are no prompts in this file."))
    if len(rows) > MOST_READ:
        words = _("The file has more than %(most)s prompts.")
        raise UploadError("too_many", words % {"most": write_number(MOST_READ)})
    return rows


def _is_prompt(row: Any) -> bool:
    return isinstance(row, dict) and ("command" in row or "text" in row or "content" in row)


def _read_wordings(rows: list[Any], report: PromptReport) -> Iterator[Wording]:
    """Yield what can be kept; the others are refused in the report."""
    for number, row in enumerate(rows, 1):
        if not _is_prompt(row):
            report.refuse(f"{number}", "no_prompt")
            continue
        text = _read_text(row)
        command = clean_title(row.get("command")).removeprefix("/")[:MOST_COMMAND]
        title = clean_title(row.get("title")) or clean_title(row.get("name")) or command
        title = (title or " ".join(text.split()))[:MOST_TITLE].strip()
        try:
            parse_prompt(text)
        except VariableError as error:
            report.refuse(title or f"{number}", error)
            continue
        if not text.strip():
            report.refuse(title or f"{number}", "no_text")
        elif len(text) > MOST_TEXT:
            report.refuse(title, "too_long")
        else:
            yield Wording(title=title, command=command, text=text)


def _read_text(row: dict[str, Any]) -> str:
    found = row.get("text", row.get("content"))
    return clean_text(found).replace("\r\n", "\n") if isinstance(found, str) else ""
