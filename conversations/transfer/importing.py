"""Importing recordings: each becomes a conversation like any other that can be continued.

The tools and the system prompt of a recording belong to the recorded agent: here the system text
becomes the conversation's instructions and our agent's tools are offered. The public id is derived
from the user and the recorded id, so the unique constraint refuses the same record twice, even in
concurrent imports. Once such a conversation was erased, the record may come in again, under another
id: anchors of the erased chain keep the first one. A record that the user exported here is refused
as long as that conversation exists.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid5

from django.db import IntegrityError, transaction
from django.utils import timezone

from conversations.context.view import wire
from conversations.files.attachments import store_imported_files
from conversations.library.folders import find_or_add_folder
from conversations.log.chain import append_rows
from conversations.log.search_index import index_messages, index_title
from conversations.models import Conversation, Erasure, Folder, Message, Turn, User
from conversations.transfer.recordings import AlreadyImported, Entry, Exchange, Recording


def import_recording(*, user: User, recording: Recording, model: str) -> Conversation:
    """Store a recording in one transaction; raises AlreadyImported when the user has it."""
    if _is_exported(user, recording):
        raise AlreadyImported(f"{recording.id} is the export of a conversation that is there")
    public_id = _derive_public_id(user, recording)
    opening = f"{recording.id} · {recording.opening}" if recording.opening else recording.id
    try:
        with transaction.atomic():
            conversation = Conversation.objects.create(
                public_id=public_id,
                owner=user,
                title=recording.title or opening[:200],
                model=model,
                instructions=recording.instructions,
                effort=recording.effort,
                folder=_find_folder(user, recording),
            )
            _store(conversation, recording.exchanges)
            _date(conversation, recording)
            index_title(conversation=conversation)
    except IntegrityError as error:
        if not Conversation.objects.filter(public_id=public_id).exists():
            raise
        raise AlreadyImported(f"{recording.id} was imported before, as {public_id}") from error
    return conversation


def _find_folder(user: User, recording: Recording) -> Folder | None:
    """Return the folder of the recorded name; none where the user cannot have another one."""
    if not recording.folder:
        return None
    return find_or_add_folder(owner_id=user.pk, name=recording.folder)


def _derive_public_id(user: User, recording: Recording) -> UUID:
    """Return the id that the record's conversation has, or gets; no erased one had it."""
    public_id = uuid5(user.public_id, f"recording:{recording.id}")
    while Erasure.objects.filter(conversation=public_id).exists():
        public_id = uuid5(public_id, "erased")
    return public_id


def _is_exported(user: User, recording: Recording) -> bool:
    """Return whether the record is an export of a conversation that the user still has."""
    try:
        public_id = UUID(recording.id)
    except ValueError:
        return False
    return Conversation.objects.filter(owner=user, public_id=public_id).exists()


def _store(conversation: Conversation, exchanges: tuple[Exchange, ...]) -> None:
    """Append turns and messages; nobody sees the conversation before the commit."""
    now = timezone.now()
    exchanges = tuple(
        Exchange(tuple(_with_files(conversation, entry) for entry in exchange.entries))
        for exchange in exchanges
    )
    turns = Turn.objects.bulk_create(
        Turn(
            conversation=conversation,
            number=number,
            parent=number - 1,
            state="done",
            finish_reason="end_turn" if exchange.is_answered else "truncated",
            payload_digest=wire.digest(exchange.entries[0].content),
            started_at=now,
            ended_at=now,
        )
        for number, exchange in enumerate(exchanges, 1)
    )
    conversation.leaf = len(turns)
    conversation.save(update_fields=["leaf"])
    rows = []
    for turn, exchange in zip(turns, exchanges, strict=True):
        for entry in exchange.entries:
            row = Message(
                conversation=conversation,
                seq=conversation.head + 1,
                parent=conversation.tip,
                turn=turn,
                kind=entry.kind,
                content=entry.content,
                estimate=entry.tokens,
            )
            conversation.head = conversation.tip = row.seq
            rows.append(row)
    append_rows(rows, conversation)
    index_messages(conversation=conversation, rows=rows)


def _with_files(conversation: Conversation, entry: Entry) -> Entry:
    """Store the files of a prompt as attachments and refer to them in it."""
    if entry.kind != "prompt":
        return entry
    return replace(
        entry, content=store_imported_files(conversation=conversation, content=entry.content)
    )


def _date(conversation: Conversation, recording: Recording) -> None:
    """Set the recorded dates that lists show; the log keeps the time of the import.

    So do retention rules, or a rule would take at once what was just imported.
    """
    if began := recording.began or recording.ended:
        conversation.created_at = began
        conversation.updated_at = max(began, recording.ended or began)
        Conversation.objects.filter(pk=conversation.pk).update(
            created_at=conversation.created_at,
            updated_at=conversation.updated_at,
            restored_at=timezone.now(),
        )
