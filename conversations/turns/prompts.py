"""Prompts: what a person sends, checked under locks and made a turn at the end of the shown path.

All checks run under the locks of the owner and of the conversation. So parallel sends with one id
make one turn, the cap on live turns holds, and no insert waits at the unique index of live turns
for a worker that itself waits for the conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.db.models import Max
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from conversations.conf import conf
from conversations.context.view import wire
from conversations.files.attachments import (
    AttachmentError,
    attach_files,
    estimate_prompt_tokens,
    lock_files,
    write_blocks,
)
from conversations.log.append import append_message
from conversations.log.chain import lock_conversation
from conversations.log.prepared_rows import shape_of
from conversations.models import IS_LIVE, LIVE, Attachment, Conversation, Turn, User
from conversations.rendering.numbers import write_number
from conversations.rendering.refusal import RefusalError

RUNNING = gettext_noop("An answer is on its way; wait until it is done, or stop it first.")
REUSED = gettext_noop("This message id was used for another message.")
_LOCK_OWNER = "SELECT id FROM conversations_user WHERE id = %s FOR NO KEY UPDATE"


class SendError(RefusalError):
    """A prompt was refused; the text is for its sender."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A message to send: the wire text of its blocks, and the id from its client."""

    content: str
    client_id: UUID
    #: The files that are attached with it.
    files: Sequence[Attachment] = ()
    #: The turn whose prompt this repeats; the turn whose cut answer it continues.
    retry_of: Turn | None = None
    continues: Turn | None = None

    @property
    def digest(self) -> str:
        return wire.digest(self.content)


def encode_text(text: str) -> str:
    """Encode typed text as a block, "" if it is empty; raises SendError."""
    text = wire.clean(text.replace("\r\n", "\n"))
    if len(text) > conf.max_prompt_chars:
        words = _(
            "The message has %(count)s characters; at most %(most)s fit. It is still in the box:"
            " shorten it, or save it as a file for the agent to read."
        )
        most = write_number(conf.max_prompt_chars)
        raise SendError("too_long", words % {"count": write_number(len(text)), "most": most})
    return wire.encode({"type": "text", "text": text}) if text.strip() else ""


def join_blocks(blocks: Sequence[str]) -> str:
    """Join the blocks of a prompt; raises SendError if there are none."""
    if not blocks:
        raise SendError("empty", _("Write a message first."))
    return wire.join(blocks)


def compose_prompt(
    *, conversation: Conversation, text: str, client_id: UUID, attachments: Sequence[UUID]
) -> Prompt:
    """Compose a prompt, its files first; the owner is locked. Raises SendError."""
    typed = encode_text(text)
    try:
        files = lock_files(conversation=conversation, ids=attachments) if attachments else []
    except AttachmentError as error:
        raise SendError(error.code, error.text) from error
    blocks = write_blocks(files)
    return Prompt(join_blocks([*blocks, typed] if typed else blocks), client_id, files)


def attach_prompt_files(row: Conversation, prompt: Prompt) -> None:
    """Attach the files of a prompt that is no repeat; raises SendError where they do not fit."""
    if not prompt.files:
        return
    try:
        attach_files(conversation=row, files=prompt.files)
    except AttachmentError as error:
        raise SendError(error.code, error.text) from error


def lock_owner(user_id: int) -> None:
    """Lock a user, so that parallel sends keep to the cap on live turns.

    On SQLite the transaction excludes all other writers anyway.
    """
    if connection.features.has_select_for_update:
        with connection.cursor() as cursor:
            cursor.execute(_LOCK_OWNER, [user_id])
            if cursor.fetchone() is None:
                raise User.DoesNotExist(f"user {user_id}")


def lock_for_send(conversation: Conversation) -> Conversation:
    """Lock owner and conversation, in this order; raises SendError if it is in the trash."""
    lock_owner(conversation.owner_id)
    row = lock_conversation(conversation.pk)
    if row.deleted_at is not None:
        raise SendError("deleted", _("This chat is in the trash; bring it back first."))
    return row


@dataclass(frozen=True, slots=True)
class SendState:
    """What decides about a prompt with a client id: one statement."""

    #: Whether a turn, or a waiting message, of the conversation has that id.
    is_sent: bool
    is_queued: bool
    #: Whether an answer is running here; the owner's live turns that count; the last turn's number.
    is_busy: bool
    live: int
    last: int


#: Raw SQL, because the ORM takes longer to write these five statements than the rest of a send.
_LIVE = ", ".join(f"'{state}'" for state in LIVE)
_SEND_STATE = f"""
SELECT
  EXISTS (SELECT 1 FROM conversations_turn WHERE conversation_id = %(key)s AND client_id = %(id)s),
  EXISTS (SELECT 1 FROM conversations_queuedprompt
          WHERE conversation_id = %(key)s AND client_id = %(id)s),
  EXISTS (SELECT 1 FROM conversations_turn WHERE conversation_id = %(key)s AND state IN ({_LIVE})),
  (SELECT COUNT(*) FROM conversations_turn t
   JOIN conversations_conversation c ON c.id = t.conversation_id
   WHERE c.owner_id = %(owner)s AND t.state IN ({_LIVE}) AND t.state <> 'approval_wait'),
  (SELECT MAX(number) FROM conversations_turn WHERE conversation_id = %(key)s)
"""  # noqa: S608 - our own words


def read_send_state(row: Conversation, client_id: UUID) -> SendState:
    """Read what decides about a prompt in a locked conversation."""
    field = Turn._meta.get_field("client_id")
    values = {
        "key": row.pk,
        "owner": row.owner_id,
        "id": field.get_db_prep_value(client_id, connection),
    }
    with connection.cursor() as cursor:
        cursor.execute(_SEND_STATE, values)
        sent, queued, busy, live, last = cursor.fetchone()
    return SendState(bool(sent), bool(queued), bool(busy), live, last or 0)


def find_sent_turn(row: Conversation, prompt: Prompt) -> Turn | None:
    """Return the turn with the same client id, if any; raises SendError if its content differs."""
    turn = row.turns.filter(client_id=prompt.client_id).first()
    if turn is not None:
        demand_same(turn.payload_digest, prompt.digest)
    return turn


def demand_same(stored: str, sent: str) -> None:
    if stored != sent:
        raise SendError("reused_id", _(REUSED))


def is_busy(row: Conversation) -> bool:
    return row.turns.filter(IS_LIVE).exists()


def demand_idle(row: Conversation) -> None:
    if is_busy(row):
        raise SendError("busy", _("An answer is on its way; send when it is done."))


def demand_slot(row: Conversation) -> None:
    """Refuse a turn beyond the owner's cap on live turns; turns awaiting approval do not count."""
    live = Turn.objects.filter(IS_LIVE, conversation__owner_id=row.owner_id)
    demand_room(live.exclude(state="approval_wait").count())


def demand_room(live: int) -> None:
    """Refuse a turn beside so many live ones of its owner."""
    if live >= conf.max_live_turns:
        raise SendError("too_many", _("Too many answers are on their way; wait for one to finish."))


def open_turn(row: Conversation, prompt: Prompt, last: int | None = None) -> Turn:
    """Append the prompt with its turn to the shown path of a locked conversation.

    `last` is the number of its last turn, if it was read already.
    """
    if last is None:
        last = row.turns.aggregate(last=Max("number"))["last"]
    turn = Turn(
        conversation=row,
        number=(last or 0) + 1,
        parent=row.leaf,
        # The version that appending the prompt, below, will make.
        version=row.version + 1,
        client_id=prompt.client_id,
        payload_digest=prompt.digest,
        retry_of=prompt.retry_of,
        continues=prompt.continues,
    )
    shape_of(Turn).insert(turn)
    row.leaf = turn.number
    append_message(
        conversation=row,
        turn_id=turn.pk,
        kind="prompt",
        content=prompt.content,
        estimate=estimate_prompt_tokens(conversation_id=row.pk, content=prompt.content),
        also=("leaf",),
    )
    return turn
