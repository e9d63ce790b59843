"""Appends to a conversation's log; the row lock on the conversation orders the writers."""

from __future__ import annotations

from dataclasses import asdict

from django.db import transaction

from conversations.context.policy.policy import Policy, dump_policy
from conversations.context.view import attachment_refs, edits, wire
from conversations.context.view.edits import Transformation as Change
from conversations.db import transact
from conversations.log.chain import append_row, lock_conversation
from conversations.log.leases import Lease, hold_lease
from conversations.log.search_index import index_messages
from conversations.log.texts import make_storable
from conversations.models import Conversation, Message, Transformation
from conversations.signals import transformation_recorded


def append_message(
    *,
    conversation: Conversation,
    turn_id: int | None,
    kind: str,
    content: str,
    estimate: int,
    also: tuple[str, ...] = (),
    is_last: bool = True,
) -> Message:
    """Append one message to the locked conversation, in the caller's transaction.

    `also` and `is_last` as for `append_row`.
    """
    row = Message(
        conversation=conversation,
        seq=conversation.head + 1,
        parent=conversation.tip,
        turn_id=turn_id,
        kind=kind,
        content=content,
        estimate=estimate,
    )
    conversation.head = conversation.tip = row.seq
    append_row(row, conversation, also=also, is_last=is_last)
    index_messages(conversation=conversation, rows=[row])
    return row


@transact
def store_results(*, lease: Lease, content: str, estimate: int) -> Message:
    """Append the results message of the live turn, and let the turn run again."""
    hold_lease(lease, state="running")
    return append_message(
        conversation=lock_conversation(lease.conversation_id),
        turn_id=lease.turn_id,
        kind="results",
        content=content,
        estimate=estimate,
    )


@transact
def record_transformation(
    *, lease: Lease, change: Change, policy: Policy, summary_call: int | None
) -> Transformation:
    """Append one transformation with the policy in force."""
    hold_lease(lease)
    return append_change(
        conversation=lock_conversation(lease.conversation_id),
        turn_id=lease.turn_id,
        change=change,
        policy=policy,
        summary_call=summary_call,
    )


def append_change(
    *,
    conversation: Conversation,
    turn_id: int | None,
    change: Change,
    policy: Policy,
    summary_call: int | None = None,
    parent: int | None = None,
    actor_id: int | None = None,
) -> Transformation:
    """Append a change to the locked conversation, after `parent` where that is not its tip."""
    row = Transformation(
        conversation=conversation,
        seq=conversation.head + 1,
        parent=conversation.tip if parent is None else parent,
        turn_id=turn_id,
        kind=change.kind,
        outcome=change.outcome,
        number=change.trigger.number,
        threshold=change.trigger.threshold,
        source=change.trigger.source,
        setting=change.trigger.setting,
        edits=edits.dump_edits(_name_attachments(conversation, change)),
        policy=wire.encode(dump_policy(policy)),
        tokens_before=change.tokens_before,
        tokens_after=change.tokens_after,
        bytes_before=change.bytes_before,
        bytes_after=change.bytes_after,
        note=make_storable(change.note),
        reason=make_storable(change.reason),
        decision=wire.encode(asdict(change.decision)) if change.decision else "",
        summary_call_id=summary_call,
        actor_id=actor_id,
    )
    conversation.head = conversation.tip = row.seq
    append_row(row, conversation)
    transaction.on_commit(
        lambda: transformation_recorded.send_robust(sender=Transformation, transformation=row)
    )
    return row


def _name_attachments(conversation: Conversation, change: Change) -> tuple[edits.Edit, ...]:
    """Return the edits with stored files replaced by their references."""
    files = conversation.attachments.all()
    return attachment_refs.collapse_edits(
        change.edits, lambda digest: files.filter(data=digest).exists()
    )
