"""Importing an uploaded file: each conversation in its own transaction, and a report of all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import IO, Any
from uuid import UUID

from django.utils.translation import gettext as _

from conversations.budgets.prices import find_usable_model
from conversations.conf import conf
from conversations.models import User
from conversations.rendering.numbers import write_number
from conversations.transfer.formats import convert_to_record
from conversations.transfer.importing import import_recording
from conversations.transfer.record_fields import clean_text
from conversations.transfer.recordings import (
    AlreadyImported,
    RecordError,
    Recording,
    parse_recording,
    read_object,
)
from conversations.transfer.unpacking import UploadError, read_objects

#: Conversations of one file, and how many of them the report names.
MOST, NAMED = 5_000, 200
#: The part of the limit that one conversation may use: parsed, it takes several times the memory.
PART = 20
_lock = Lock()
#: Users whose upload this process is reading.
_reading: set[int] = set()


@dataclass(slots=True)
class Report:
    """The result for a file's conversations; `stopped` says why reading ended early."""

    imported: int = 0
    again: int = 0
    refused: int = 0
    #: (public id, title) of the first ones imported; (name, reason) of the first ones refused.
    new: list[tuple[UUID, str]] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)
    stopped: str = ""

    def refuse(self, name: str, reason: str) -> None:
        self.refused += 1
        if len(self.problems) < NAMED:
            self.problems.append((name, reason))


def import_upload(*, user: User, file: IO[bytes], size: int, model: str) -> Report:
    """Import a file's conversations; raises UploadError when none can be read at all.

    One that names no model, or none that the person may use, gets `model`.
    """
    with _hold_upload(user.pk):
        return _import_file(user, file, size, model)


@contextmanager
def _hold_upload(user_id: int) -> Iterator[None]:
    """Hold the only upload slot of a user; raises UploadError when it is taken."""
    with _lock:
        if user_id in _reading:
            raise UploadError("busy", _("Your last upload is still being read; wait for its end."))
        _reading.add(user_id)
    try:
        yield
    finally:
        with _lock:
            _reading.discard(user_id)


def _import_file(user: User, file: IO[bytes], size: int, model: str) -> Report:
    if size > conf.max_import_bytes:
        numbers = {
            "size": write_number(size),
            "most": write_number(conf.max_import_bytes // 1_000_000),
        }
        words = _("The file has %(size)s bytes; at most %(most)s MB are read.")
        raise UploadError("too_big", words % numbers)
    report = Report()
    most = conf.max_import_unpacked
    try:
        for number, line in enumerate(read_objects(file, most=most, most_each=most // PART), 1):
            if number > MOST:
                words = _("Only the first %(most)s chats were read.")
                report.stopped = words % {"most": write_number(MOST)}
                break
            _import(user, line, number, model, report)
    except UploadError as error:
        if not (report.imported or report.again or report.refused):
            raise
        report.stopped = error.text
    if not (report.imported or report.again or report.refused):
        raise UploadError("none", _("There are no chats in this file."))
    return report


def _import(user: User, line: bytes, number: int, model: str, report: Report) -> None:
    name = _("chat %(number)s") % {"number": write_number(number)}
    try:
        found = read_object(line)
        name = _find_name(found) or name
        recording = parse_recording(convert_to_record(found))
        conversation = import_recording(
            user=user, recording=recording, model=_choose_model(user, recording, model)
        )
    except AlreadyImported:
        report.again += 1
    except RecordError as error:
        report.refuse(name, str(error))
    else:
        report.imported += 1
        if len(report.new) < NAMED:
            report.new.append((conversation.public_id, conversation.title))


def _choose_model(user: User, recording: Recording, default: str) -> str:
    """Return the model that the record names if the person may use it, else the default."""
    found = find_usable_model(user.pk, recording.model) if recording.model else None
    return found.pk if found is not None else default


def _find_name(found: dict[str, Any]) -> str:
    """Return the name of a conversation in its export."""
    names = (found.get(key) for key in ("title", "name", "id", "uuid"))
    return next(
        (clean_text(name)[:80] for name in names if isinstance(name, str) and name.strip()), ""
    )
