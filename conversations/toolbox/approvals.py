"""Approvals: a worker asks and releases the turn; the owner decides each question once.

While a question is open no worker runs the turn and no money is held for it, so it may wait for
days and across restarts. After the last decision the turn can be claimed again. A permission
carries the digest of the shown arguments, so no other arguments can be allowed. A question that is
damaged can only be denied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.agent.approval_rules import ApprovalQuestion
from conversations.agent.stop import Stopped
from conversations.conf import conf
from conversations.context.errors import WireError
from conversations.context.view import wire
from conversations.db import transact
from conversations.log.chain import append_row, lock_conversation
from conversations.log.findings import read_decodable, read_leniently
from conversations.log.leases import Lease, hold_lease, release_turn
from conversations.log.page_version import raise_version
from conversations.log.texts import make_storable
from conversations.models import Approval, Conversation, Decision, ToolCall, Turn


@dataclass(eq=False)
class ApprovalError(Exception):
    """The decision is refused: unknown, changed, decided or expired. The text is for people."""

    code: str
    text: str

    def __str__(self) -> str:
        return self.text


@transact
def ask_person(*, lease: Lease, questions: Sequence[ApprovalQuestion]) -> None:
    """Store the questions and release the turn; raises Stopped when a stop came first."""
    hold_lease(lease, state="approval_wait")
    turn = Turn.objects.get(pk=lease.turn_id)
    if turn.stop_requested_at is not None:
        raise Stopped("user")
    conversation = lock_conversation(lease.conversation_id)
    rows = ToolCall.objects.filter(turn=turn)
    calls = {call.tool_use_id: call for call in read_decodable(lambda: list(rows))}
    expires_at = timezone.now() + timedelta(hours=conf.approval_hours)
    stored = set(Approval.objects.filter(call__turn=turn).values_list("call_id", flat=True))
    for ask in questions:
        call = calls[ask.use.id]
        if call.pk in stored:
            continue
        question = Approval(
            conversation=conversation,
            call=call,
            arguments_digest=wire.digest(call.input),
            destination=make_storable(ask.destination),
            reason=ask.reason,
            sources=_join_sources(ask.sources),
            words=make_storable(wire.encode(ask.words)) if ask.words else "",
            expires_at=expires_at,
        )
        append_row(question, conversation)
    release_turn(turn)
    raise_version(lease.conversation_id)


@transact
def decide_approval(
    *, conversation: Conversation, approval_id: int, digest: str, verdict: str, actor_id: int
) -> Turn:
    """Decide a question of the conversation, once; returns its turn. Raises ApprovalError."""
    rows = Approval.objects.filter(pk=approval_id, conversation=conversation)
    turn = _lock_turn(rows.values_list("call__turn", flat=True).first())
    question = read_leniently(rows.select_related("call").first)
    if turn is None or question is None:
        raise ApprovalError("unknown", _("This call was never asked about."))
    allows = verdict != Decision.Verdict.DENIED
    if allows and not (is_intact(question) and digest == question.arguments_digest):
        raise ApprovalError("changed", _("These are not the arguments that were asked about."))
    if Decision.objects.filter(approval=question).exists():
        raise ApprovalError("decided", _("This was decided already."))
    if turn.state != "approval_wait" or question.expires_at <= timezone.now():
        raise ApprovalError("over", _("This call does not wait for a decision any more."))
    _record(question, verdict, actor_id)
    if verdict == Decision.Verdict.CONVERSATION:
        # Other calls of the answer have the same question.
        place = {"call__name": question.call.name, "destination": question.destination}
        rest = Approval.objects.filter(call__turn=turn, decision=None, **place)
        for other in read_leniently(lambda: list(rest.select_related("call"))):
            if is_intact(other):
                _record(other, verdict, actor_id)
    _resume_turn(turn)
    return turn


def is_intact(question: Approval) -> bool:
    """Return whether a question, read leniently, still says which call was asked about."""
    is_same = question.arguments_digest == wire.digest(question.call.input)
    return is_same and read_words(question.words) is not None


def read_words(text: str) -> list[tuple[str, str]] | None:
    """Return the stored words of a question, each with its source; None if they are damaged."""
    if not text:
        return []
    try:
        pairs = [(word, source) for word, source in wire.decode(text)]
    except (WireError, TypeError, ValueError):
        return None
    return pairs if all(isinstance(part, str) for pair in pairs for part in pair) else None


@transact
def expire_approvals(*, turn_id: int) -> Turn | None:
    """Close the expired questions of a turn and return it; None when there are none."""
    turn = _lock_turn(turn_id)
    late = Approval.objects.filter(call__turn_id=turn_id, decision=None, expires_at__lte=Now())
    # Not its texts, which may be damaged.
    late = late.only("conversation")
    if turn is None or turn.state != "approval_wait" or not late:
        return None
    for question in late:
        _record(question, Decision.Verdict.EXPIRED, None)
    _resume_turn(turn)
    return turn


def list_turns_with_late_questions() -> list[int]:
    """Return the keys of turns with questions that have expired."""
    late = filter_late_questions().order_by("call__turn_id")
    return list(late.values_list("call__turn_id", flat=True).distinct())


def filter_late_questions() -> QuerySet[Approval]:
    """Return the questions that have expired while their turns wait for an answer."""
    return Approval.objects.filter(
        decision=None, expires_at__lte=Now(), call__turn__state="approval_wait"
    )


def _join_sources(sources: Sequence[str]) -> str:
    """Write the sources a line each, those that fit."""
    kept, room = list[str](), Approval._meta.get_field("sources").max_length or 0
    for source in map(make_storable, sources):
        room -= len(source) + 1
        if room >= 0:
            kept.append(source)
    return "\n".join(kept)


def _lock_turn(turn_id: int | None) -> Turn | None:
    if turn_id is None:
        return None
    return Turn.objects.select_for_update(no_key=True).filter(pk=turn_id).first()


def _record(question: Approval, verdict: str, actor_id: int | None) -> None:
    conversation = lock_conversation(question.conversation_id)
    decision = Decision(
        conversation=conversation, approval=question, verdict=verdict, actor_id=actor_id
    )
    append_row(decision, conversation)


def _resume_turn(turn: Turn) -> None:
    """Make a turn claimable once it has no open questions."""
    if not Approval.objects.filter(call__turn=turn, decision=None).exists():
        turn.state = "tool_wait"
        turn.save(update_fields=["state"])
