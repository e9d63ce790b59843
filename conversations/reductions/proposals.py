"""Summaries that a person requests: the request, its calls, and the decision to apply or discard.

The call is recorded on a turn that has ended, while none is running, so no lease fences it. Nothing
is applied before the person decides, and then only at the tip that was summarised: a prompt sent
meanwhile is answered as usual and makes the summary outdated. A rejection is recorded with its
cost. Calls of a dead process are closed like any call in doubt.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.agent.ports import Refused, Sending, Sent
from conversations.conf import conf
from conversations.context.errors import ContextError
from conversations.context.steps import by_hand, summary_versions
from conversations.context.steps.summary import Summarising
from conversations.context.steps.summary_checks import SummaryFlaw
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view.edits import Transformation as Change
from conversations.context.view.edits import build_unapplied
from conversations.db import transact
from conversations.log.append import append_change
from conversations.log.chain import lock_conversation
from conversations.log.leases import Lease, read_lease_duration
from conversations.log.texts import make_storable
from conversations.models import Conversation, Proposal, Transformation
from conversations.reductions.manual_changes import build_rewording
from conversations.reductions.policy import effective_policy
from conversations.reductions.record_change import (
    ManualChangeError,
    demand_idle,
    demand_policy,
    demand_same_body,
    record_change,
    refusing_damage,
)
from conversations.reductions.working_view import find_summary, load_working_view
from conversations.templatetags.recorded import translated
from conversations.turns import calls
from conversations.turns.side_calls import GRACE, lock_for_side_call

TOO_LITTLE = gettext_noop(
    "There is too little to summarise yet: the first message and the newest ones stay as they are."
)
STOPPED = mark_recorded(
    gettext_noop("The server was stopped while it was being written. Ask again.")
)
MOVED = mark_recorded(gettext_noop("The chat went on before it was asked for."))
_EXPIRED = mark_recorded(gettext_noop("The server stopped while it was being written. Ask again."))
_UNWANTED = mark_recorded(gettext_noop("Nobody waits for it any more."))
_DISCARDED = mark_recorded(gettext_noop("Discarded: these words were not wanted"))
#: Whoever claims a request sets `asked_at`.
_UNCLAIMED = Q(text="", reason="", asked_at=F("created_at"))


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """The request to the model, and the ended turn on which it is recorded."""

    proposal_id: int
    lease: Lease
    steps: Summarising


@transact
@refusing_damage()
def request_summary(*, conversation_id: int, actor_id: int, target: int = 0) -> tuple[int, bool]:
    """Record that a summary, or a new wording of entry `target`, is requested.

    Returns the key of the proposal and whether it is new: an undecided request is not made twice.
    Raises ManualChangeError.
    """
    conversation = lock_conversation(conversation_id)
    demand_idle(conversation)
    known = Proposal.objects.filter(conversation=conversation).first()
    if known is not None:
        is_same = (known.tip, known.target) == (conversation.tip, target)
        if is_same and not known.reason and not _is_expired(known):
            return known.pk, False
        if known.is_asking and not _is_expired(known):
            raise ManualChangeError(
                "asking", _("A summary is being written; wait until it is done.")
            )
        known.delete()
    if not by_hand.list_summary_requests(_build_steps(conversation, target)):
        raise ManualChangeError("nothing", _(TOO_LITTLE))
    # Not by the database's clock: SQLite's counts milliseconds, and a claim in the same one would
    # leave the request unclaimed. Who claims it does so at once, so that clocks that are minutes
    # apart change nothing.
    at = timezone.now()
    made = Proposal.objects.create(
        conversation=conversation,
        tip=conversation.tip,
        target=target,
        actor_id=actor_id,
        created_at=at,
        asked_at=at,
    )
    return made.pk, True


def list_unclaimed_proposals() -> list[int]:
    """Return the requests that no process has claimed: their wake-up is on its way, or was lost."""
    return list(filter_unclaimed_proposals().order_by("pk").values_list("pk", flat=True))


def filter_unclaimed_proposals() -> QuerySet[Proposal]:
    """Return the requests of `list_unclaimed_proposals`."""
    return Proposal.objects.filter(_UNCLAIMED)


def claim_proposal(*, proposal_id: int) -> bool:
    """Claim a request for this process; False if another has, or nobody waits for it any more."""
    rows = Proposal.objects.filter(_UNCLAIMED, pk=proposal_id)
    return rows.update(asked_at=Now()) > 0


def renew_claim(*, proposal_id: int) -> None:
    """Say that the process which claimed the request is alive, until the answer is stored."""
    rows = Proposal.objects.filter(pk=proposal_id, text="", reason="")
    rows.update(asked_at=Now())


def read_request(*, proposal_id: int) -> SummaryRequest | None:
    """Return the request to send; None when it was withdrawn or is outdated."""
    proposal = Proposal.objects.select_related("conversation").filter(pk=proposal_id).first()
    if proposal is None or not proposal.is_asking:
        return None
    conversation = proposal.conversation
    turn = conversation.turns.filter(number=conversation.leaf).first()
    if turn is None or conversation.tip != proposal.tip:
        return None
    lease = Lease(
        turn.pk, conversation.pk, conversation.owner_id, turn.number, turn.lease_generation
    )
    return SummaryRequest(proposal_id, lease, _build_steps(conversation, proposal.target))


@transact
def open_summary_call(*, request: SummaryRequest, sending: Sending) -> Sent:
    """Record a call for the request and hold its highest cost; raises Refused."""
    row = lock_for_side_call(request.lease.conversation_id)
    rows = Proposal.objects.filter(pk=request.proposal_id, text="", reason="")
    if not rows.exists():
        raise Refused("deleted", _UNWANTED)
    sent = calls.record_call(conversation=row, lease=request.lease, sending=sending)
    rows.update(call=sent.call, asked_at=Now())
    return sent


@transact
def store_answer(
    *, proposal_id: int, text: str = "", reason: str = "", change: Change | None
) -> None:
    """Store the accepted text for the person's decision, or the reason why there is none."""
    proposal = Proposal.objects.filter(pk=proposal_id).first()
    if proposal is None:
        return
    conversation = lock_conversation(proposal.conversation_id)
    rows = Proposal.objects.filter(pk=proposal_id, text="", reason="")
    if not rows.update(text=make_storable(text), reason="" if text else make_storable(reason)):
        return
    if not text and change is not None and proposal.call_id is not None:
        _record_rejection(conversation, proposal, change)


@transact
@refusing_damage()
def apply_proposal(*, conversation_id: int, actor_id: int, digest: str) -> Transformation:
    """Apply the proposed summary exactly as shown; raises ManualChangeError."""
    conversation = lock_conversation(conversation_id)
    demand_idle(conversation)
    proposal = _demand_ready(conversation)
    change = build_change(conversation, proposal)
    demand_same_body(change, digest)
    row = record_change(conversation, change, actor_id, summary_call=proposal.call_id)
    proposal.delete()
    return row


@transact
def discard_proposal(*, conversation_id: int) -> None:
    """Drop the proposal; an accepted text that is not wanted is recorded as rejected.

    It can be dropped while the settings are invalid too, but then leaves no record.
    """
    conversation = lock_conversation(conversation_id)
    proposal = Proposal.objects.filter(conversation=conversation).first()
    if proposal is None or (proposal.is_asking and not _is_expired(proposal)):
        return
    if proposal.text:
        _record_discarded(conversation, proposal)
    proposal.delete()


def build_change(conversation: Conversation, proposal: Proposal) -> Change:
    """Build the change that the text would make; raises ManualChangeError if it is outdated."""
    if proposal.tip != conversation.tip:
        raise ManualChangeError("moved", _("The chat went on, so these words came too late."))
    if proposal.target:
        made = build_rewording(
            conversation, proposal.target, proposal.text, summary_versions.REWRITE
        )
    else:
        found = by_hand.replace_by_hand(
            load_working_view(conversation, demand_policy(conversation)), proposal.text
        )
        if isinstance(found, SummaryFlaw):
            words = _("The settings changed, and now %(why)s.")
            raise ManualChangeError("flawed", words % {"why": translated(found.reason)})
        made = found
    if made is None:
        raise ManualChangeError("same", _("The new words are those in use already."))
    return made


def expire_proposals(*, everything: bool = False, now: datetime | None = None) -> int:
    """Mark requests of dead processes as failed; with `everything`, all open ones."""
    return filter_expired_proposals(everything=everything, now=now).update(reason=_EXPIRED)


def filter_expired_proposals(
    *, everything: bool = False, now: datetime | None = None
) -> QuerySet[Proposal]:
    """Return the requests that `expire_proposals` marks."""
    rows = Proposal.objects.filter(text="", reason="")
    return rows if everything else rows.filter(_is_late(now or Now()))


def _is_late(now: datetime | Now) -> Q:
    """A claim is renewed like the lease of a turn; what nobody claimed waits for a wake-up.

    By the database's clock, like the leases: the clocks of processes may differ.
    """
    is_unclaimed, patience = Q(asked_at=F("created_at")), timedelta(seconds=conf.attempt_seconds)
    is_dead = ~is_unclaimed & Q(asked_at__lt=now - read_lease_duration())
    return is_dead | (is_unclaimed & Q(asked_at__lt=now - patience - GRACE))


def _is_expired(proposal: Proposal) -> bool:
    rows = Proposal.objects.filter(_is_late(Now()), pk=proposal.pk)
    return proposal.is_asking and rows.exists()


def _demand_ready(conversation: Conversation) -> Proposal:
    proposal = Proposal.objects.filter(conversation=conversation).exclude(text="").first()
    if proposal is None:
        raise ManualChangeError("moved", _("There is no summary to apply any more."))
    return proposal


def _build_steps(conversation: Conversation, target: int) -> Summarising:
    working = load_working_view(conversation, demand_policy(conversation))
    if not target:
        return by_hand.summarise_by_hand(working)
    found = find_summary(conversation)
    if found is None or found.zone is None or found.current != target:
        raise ManualChangeError(
            "replaced", _("This is not the newest version of the summary in use.")
        )
    return summary_versions.request_again(found.before, found.zone, working.gauge, working.policy)


def _record_discarded(conversation: Conversation, proposal: Proposal) -> None:
    """Record that an accepted text is not wanted, if settings and messages can be read."""
    try:
        working = load_working_view(conversation, demand_policy(conversation))
    except (ManualChangeError, ContextError):
        return
    trigger = by_hand.build_trigger(working)
    change = build_unapplied(working.view, "summary", trigger, "rejected", _DISCARDED)
    _record_rejection(conversation, proposal, change)


def _record_rejection(conversation: Conversation, proposal: Proposal, change: Change) -> None:
    """Record that a summary was written and not used; the view stays as it is."""
    turns = conversation.turns.filter(number=conversation.leaf)
    try:
        policy = effective_policy(conversation)
    except ContextError:
        return
    append_change(
        conversation=conversation,
        turn_id=turns.values_list("pk", flat=True).first(),
        change=change,
        policy=policy,
        summary_call=proposal.call_id,
        actor_id=proposal.actor_id,
    )
