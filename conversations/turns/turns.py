"""Turns: started by a stored prompt, ended in a final state; a repeated send is idempotent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import NamedTuple
from uuid import UUID

from django.db.models.functions import Now
from django.utils import timezone

from conversations.agent.ports import Ending, Finish
from conversations.conf import conf
from conversations.db import transact
from conversations.files.attachments import find_first_name
from conversations.log.chain import lock_conversation
from conversations.log.contents import note_contents
from conversations.log.leases import Lease, hold_lease
from conversations.log.page_version import raise_version
from conversations.log.search_index import index_title
from conversations.log.settings_version import reading_settings
from conversations.log.texts import make_storable
from conversations.models import LIVE, ApiCall, Conversation, Folder, Message, QueuedPrompt, Turn
from conversations.turns.billed_usage import Timing
from conversations.turns.calls import store_ending
from conversations.turns.drafts import drop_draft
from conversations.turns.metrics import count_turn
from conversations.turns.prompts import (
    attach_prompt_files,
    compose_prompt,
    demand_room,
    demand_same,
    demand_slot,
    find_sent_turn,
    lock_for_send,
    lock_owner,
    open_turn,
    read_send_state,
)
from conversations.turns.queue import (
    enqueue_prompt,
    find_queued_prompt,
    open_next_prompt,
    start_next_prompt,
)
from conversations.turns.takeovers import close_open_work


class EndedWell(NamedTuple):
    """What the end of a turn stored: the answer, the next turn, the conversation after both."""

    answer: Message | None
    following: Turn | None
    conversation: Conversation


@transact
def start_conversation(
    *,
    owner_id: int,
    model: str,
    text: str,
    client_id: UUID,
    attachments: Sequence[UUID] = (),
    effort: str = "",
    is_temporary: bool = False,
    folder: UUID | None = None,
) -> Turn:
    """Start a conversation, titled with its first words; a repeat returns the first one.

    It comes into the owner's `folder`, if that is still there: a message is not lost with one.
    """
    lock_owner(owner_id)
    compose = partial(compose_prompt, text=text, client_id=client_id, attachments=attachments)
    begun = Turn.objects.filter(conversation__owner_id=owner_id, client_id=client_id).first()
    if begun is not None:
        demand_same(begun.payload_digest, compose(conversation=begun.conversation).digest)
        return begun
    words = " ".join(make_storable(text).split())[:80]
    title = words or find_first_name(owner_id=owner_id, ids=attachments)
    hours = conf.temporary_hours if is_temporary else 0
    conversation = Conversation.objects.create(
        owner_id=owner_id,
        model=model,
        effort=effort,
        title=title,
        erase_at=timezone.now() + timedelta(hours=hours) if hours > 0 else None,
        folder=None if hours > 0 else _find_folder(owner_id, folder),
    )
    index_title(conversation=conversation)
    demand_slot(conversation)
    prompt = compose(conversation=conversation)
    attach_prompt_files(conversation, prompt)
    return open_turn(lock_conversation(conversation.pk), prompt)


def _find_folder(owner_id: int, public_id: UUID | None) -> Folder | None:
    if public_id is None:
        return None
    return Folder.objects.filter(owner_id=owner_id, public_id=public_id).first()


@transact
def send_prompt(
    *, conversation: Conversation, text: str, client_id: UUID, attachments: Sequence[UUID] = ()
) -> Turn | QueuedPrompt:
    """Store a message: as the next turn, or in the queue while an answer is running.

    A repeat with the same client id, text and files returns the same turn.
    """
    row = lock_for_send(conversation)
    prompt = compose_prompt(
        conversation=row, text=text, client_id=client_id, attachments=attachments
    )
    state = read_send_state(row, client_id)
    if state.is_sent or state.is_queued:
        sent = find_sent_turn(row, prompt) or find_queued_prompt(row, prompt)
        assert sent is not None  # noqa: S101 - the conversation is locked
        return sent
    attach_prompt_files(row, prompt)
    if state.is_busy:
        return enqueue_prompt(row, prompt)
    demand_room(state.live)
    return open_turn(row, prompt, state.last)


@transact
def finish_turn(*, lease: Lease, finish: Finish) -> Turn | None:
    """Enter the turn's final state and close what it left open; cancelled goes through cancelling.

    After a good end the first queued message becomes the next turn, which is returned.
    """
    if finish.state == "cancelled":
        hold_lease(lease, state="cancelling")
    _enter_final_state(lease, finish)
    if finish.state == "done":
        drop_draft(lease.turn_id)
        return start_next_prompt(conversation_id=lease.conversation_id)
    close_open_work(Turn.objects.get(pk=lease.turn_id))
    raise_version(lease.conversation_id)
    return None


@transact
@reading_settings()
def finish_with_call(
    *,
    lease: Lease,
    call_id: int,
    ending: Ending,
    timing: Timing,
    finish: Finish,
    record: ApiCall | None = None,
) -> EndedWell:
    """Close the last call of a turn and end the turn well, in one transaction."""
    turn = _enter_final_state(lease, finish)
    conversation = lock_conversation(lease.conversation_id)
    note_contents(conversation, turn=turn, call_id=call_id)
    answer = store_ending(
        conversation=conversation,
        lease=lease,
        call_id=call_id,
        ending=ending,
        timing=timing,
        effects={},
        record=record,
    )
    return EndedWell(answer, open_next_prompt(conversation), conversation)


def _enter_final_state(lease: Lease, finish: Finish) -> Turn:
    turn = hold_lease(
        lease,
        state=finish.state,
        finish_reason=make_storable(finish.reason)[:20],
        error_code=finish.code[:40],
        error_text=make_storable(finish.text),
        retry_at=None,
        waits_for="",
        ended_at=Now(),
    )
    count_turn(state=finish.state, reason=finish.reason or finish.code)
    return turn


@transact
def request_stop(*, turn: Turn) -> None:
    """Request that a live turn stop; one that no worker runs is cancelled at once."""
    Turn.objects.filter(pk=turn.pk, state__in=LIVE, stop_requested_at=None).update(
        stop_requested_at=Now()
    )
    ended = {"finish_reason": "stopped", "ended_at": Now()}
    is_over = False
    if Turn.objects.filter(pk=turn.pk, state="queued").update(state="cancelled", **ended):
        is_over = True
        count_turn(state="cancelled", reason="stopped")
    waiting = Turn.objects.filter(pk=turn.pk, state="approval_wait")
    if waiting.update(state="cancelling"):
        is_over = True
        close_open_work(turn)
        Turn.objects.filter(pk=turn.pk).update(state="cancelled", **ended)
        count_turn(state="cancelled", reason="stopped")
    if is_over:
        raise_version(turn.conversation_id)
