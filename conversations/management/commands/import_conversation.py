"""Imports recorded conversations, JSON lines or .gz of them; a bad line never stops the others."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management import CommandError
from django.core.management.base import BaseCommand, CommandParser

from conversations.conf import conf
from conversations.models import ApiModel, Conversation, User
from conversations.transfer.importing import import_recording
from conversations.transfer.recordings import RecordError, read_record

GZIP = b"\x1f\x8b"


class Command(BaseCommand):
    help = (
        "Import recorded conversations for a user: JSON lines, also gzipped, each one conversation"
        ' `{"id", "system", "messages"}` in the form of the Messages API.'
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", metavar="FILE", help="JSON lines, plain or .gz")
        parser.add_argument("--user", required=True, metavar="NAME", help="who will own them")
        parser.add_argument("--model", default="", metavar="ID", help="default: the site's model")
        parser.add_argument("--limit", type=int, metavar="N", help="read at most N records")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"there is no user {options['user']!r}", returncode=2)
        model = options["model"] or conf.model
        if not ApiModel.objects.filter(pk=model, is_enabled=True).exists():
            raise CommandError(f"the model {model!r} is not in the catalogue", returncode=2)
        if options["limit"] is not None and options["limit"] < 1:
            raise CommandError("--limit must be at least 1", returncode=2)
        left, imported, refused = options["limit"], 0, 0
        for name in options["files"]:
            for where, line in _read_lines(name):
                if left == 0:
                    break
                left = left if left is None else left - 1
                try:
                    recording = read_record(line) if isinstance(line, bytes) else _raise(line)
                    conversation = import_recording(user=user, recording=recording, model=model)
                except RecordError as error:
                    refused += 1
                    self.stderr.write(f"{where}: {error}")
                else:
                    imported += 1
                    self._print_imported(conversation)
        self.stdout.write(f"{imported} imported, {refused} refused")
        if refused:
            raise SystemExit(1)

    def _print_imported(self, conversation: Conversation) -> None:
        turns, messages = conversation.turns.count(), conversation.messages.count()
        words = f"{turns} turns, {messages} messages"
        self.stdout.write(f"{conversation.public_id}  {conversation.title}  ({words})")


def _read_lines(name: str) -> Iterator[tuple[str, bytes | RecordError]]:
    """Yield each line that is not blank with its position; one that cannot be read as an error."""
    number = 0
    try:
        with Path(name).open("rb") as file:
            is_packed = file.peek(2)[:2] == GZIP
            lines = gzip.GzipFile(fileobj=file) if is_packed else file
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield f"{name}:{number}", line
    except (OSError, EOFError, zlib.error) as error:
        yield f"{name}:{number + 1}", RecordError(f"cannot be read: {error}")


def _raise(error: RecordError) -> Any:
    raise error
