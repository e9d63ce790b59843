"""Messages that wait for the end of an answer, in their order.

The transaction that ends a turn well makes the first of them the next turn, so none is lost and
none is sent twice. After any other end they wait until their owner sends them: a message meant to
follow an answer may make no sense after half of it. Budgets and caps are checked when a message
becomes a turn.
"""

from __future__ import annotations

from typing import TypeGuard
from uuid import UUID

from django.utils.translation import gettext as _

from conversations.conf import conf
from conversations.context.view import wire
from conversations.db import transact
from conversations.files.attachments import detach_files
from conversations.log.chain import lock_conversation
from conversations.log.contents import read_contents
from conversations.log.findings import read_decodable
from conversations.log.page_version import lock_and_raise, raise_version
from conversations.models import Conversation, QueuedPrompt, Turn
from conversations.rendering.numbers import write_number
from conversations.turns.prompts import (
    Prompt,
    SendError,
    demand_idle,
    demand_same,
    demand_slot,
    lock_for_send,
    open_turn,
)


def is_waiting(sent: Turn | QueuedPrompt) -> TypeGuard[QueuedPrompt]:
    """Return whether `sent` waits in the queue."""
    return isinstance(sent, QueuedPrompt)


def find_queued_prompt(row: Conversation, prompt: Prompt) -> QueuedPrompt | None:
    """Return the waiting message with the same id; raises SendError if its content differs."""
    queued = read_decodable(row.queued_prompts.filter(client_id=prompt.client_id).first)
    if queued is not None:
        demand_same(queued.payload_digest, prompt.digest)
    return queued


def enqueue_prompt(row: Conversation, prompt: Prompt) -> QueuedPrompt:
    """Queue a message in a locked conversation; raises SendError when the queue is full."""
    if row.queued_prompts.count() >= conf.max_queued_prompts:
        words = _(
            "%(most)s messages are waiting already, and no more can. Yours is still in the box."
        )
        most = write_number(conf.max_queued_prompts)
        raise SendError("queue_full", words % {"most": most})
    raise_version(row.pk)
    return QueuedPrompt.objects.create(
        conversation=row,
        client_id=prompt.client_id,
        payload_digest=prompt.digest,
        content=prompt.content,
    )


@transact
def start_next_prompt(*, conversation_id: int) -> Turn | None:
    """Make the first waiting message the next turn, after a turn has just ended."""
    return open_next_prompt(lock_and_raise(conversation_id))


def open_next_prompt(row: Conversation) -> Turn | None:
    """Make the first waiting message of a locked conversation the next turn."""
    queued = _find_first(row) if read_contents(row).queue else None
    if queued is None or row.deleted_at is not None or is_damaged(queued):
        return None
    return _open_queued(row, queued)


@transact
def send_next_prompt(*, conversation: Conversation) -> Turn | None:
    """Send the first waiting message now; None if none waits any more."""
    row = lock_for_send(conversation)
    queued = _find_first(row)
    if queued is None:
        return None
    if is_damaged(queued):
        raise SendError(
            "damaged", _("The first of these messages is damaged in the database: remove it.")
        )
    demand_idle(row)
    demand_slot(row)
    return _open_queued(row, queued)


@transact
def withdraw_prompt(*, conversation: Conversation, client_id: UUID) -> bool:
    """Remove a message from the queue and keep its files unsent; False if it waits no more."""
    row = lock_conversation(conversation.pk)
    queued = read_decodable(row.queued_prompts.filter(client_id=client_id).first)
    if queued is None:
        return False
    queued.delete()
    raise_version(row.pk)
    detach_files(conversation=row, content=queued.content)
    return True


def _find_first(row: Conversation) -> QueuedPrompt | None:
    return read_decodable(row.queued_prompts.first)


def is_damaged(queued: QueuedPrompt) -> bool:
    """Return whether a waiting message is not what was sent: it waits until it is removed."""
    return queued.payload_digest != wire.digest(queued.content)


def _open_queued(row: Conversation, queued: QueuedPrompt) -> Turn:
    turn = open_turn(row, Prompt(queued.content, queued.client_id))
    queued.delete()
    return turn
