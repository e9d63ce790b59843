"""Leases: which worker may write for a turn.

A worker claims a turn by raising its generation. Each write of the worker first renews the lease
under that generation, which also locks the turn's row; a worker that was paused and continues finds
another generation and stops. A turn that was released, by a worker that waits for a person or by
the sweep for a dead worker, is claimed like a queued one. Times are those of the database's clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone

from conversations.agent.stop import Stopped
from conversations.conf import conf
from conversations.db import transact
from conversations.log.page_version import Step, raise_version
from conversations.models import ALLOWED, LIVE, Turn

#: Turns that a worker has released.
RELEASED = Q(state__in=("running", "tool_wait"), lease_until=None)


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write for one turn, valid while its generation is the turn's."""

    turn_id: int
    conversation_id: int
    user_id: int
    number: int
    generation: int
    #: Seconds for which earlier workers ran the turn.
    ran_seconds: float = 0.0
    #: The turn's public id, part of the keys of its tool calls.
    public_id: str = ""
    #: The step of the page version that the claim made (log/page_version.py).
    step: Step | None = None

    @property
    def is_first(self) -> bool:
        """Return whether no worker has run the turn before."""
        return self.generation == 1


def read_lease_duration() -> timedelta:
    """Return how long a worker may be silent before its turn is taken over."""
    return timedelta(seconds=conf.lease_seconds)


@transact
def claim_turn(*, turn_id: int, owner: str) -> Lease | None:
    """Claim a waiting turn; None if another worker has it or nothing is left to do."""
    claim = {
        "lease_owner": owner,
        "lease_generation": F("lease_generation") + 1,
        "lease_until": Now() + read_lease_duration(),
        "claimed_at": Now(),
    }
    rows, begins = Turn.objects.filter(pk=turn_id), {"state": "running", "started_at": Now()}
    is_mine = rows.filter(state="queued").update(**claim, **begins)
    if not (is_mine or rows.filter(RELEASED).update(**claim)):
        return None
    conversation, user, number, generation, ran_ms, name, opened, version = rows.values_list(
        "conversation_id",
        "conversation__owner_id",
        "number",
        "lease_generation",
        "ran_ms",
        "public_id",
        "version",
        "conversation__version",
    ).get()
    step = version, version
    if is_mine:
        after = raise_version(conversation)
        # If the prompt was the last change before, one step covers both: the turn shows it too.
        step = (opened if opened == after - 1 else after) - 1, after
    return Lease(turn_id, conversation, user, number, generation, ran_ms / 1000, str(name), step)


def release_turn(turn: Turn, **changes: Any) -> None:
    """Let any worker claim the locked turn; adds the time it ran up to the last renewal."""
    if turn.claimed_at is not None and turn.lease_until is not None:
        ran = turn.lease_until - read_lease_duration() - turn.claimed_at
        turn.ran_ms += max(0, round(ran.total_seconds() * 1000))
    turn.lease_generation += 1
    turn.lease_owner, turn.lease_until, turn.claimed_at = "", None, None
    for name, value in changes.items():
        setattr(turn, name, value)
    turn.save()


@transact
def hand_over_turn(*, lease: Lease) -> None:
    """Release a turn between two calls, because this worker is shutting down."""
    hold_lease(lease, state="running", retry_at=None)
    raise_version(lease.conversation_id)
    release_turn(Turn.objects.get(pk=lease.turn_id))


def hold_lease(lease: Lease, *, state: str | None = None, **changes: Any) -> None:
    """Renew the lease in the caller's transaction and, with `state`, enter that state.

    Raises Stopped when the lease is lost or the state cannot be entered.
    """
    sources: tuple[str, ...] = LIVE
    if state is not None:
        changes["state"] = state
        sources = tuple(old for old in LIVE if old == state or state in ALLOWED[old])
    turns = Turn.objects.filter(
        pk=lease.turn_id, lease_generation=lease.generation, state__in=sources
    )
    if not turns.update(lease_until=Now() + read_lease_duration(), **changes):
        raise Stopped("lease")


@transact
def renew_lease(*, lease: Lease) -> bool:
    """Renew the lease; return whether a stop was requested."""
    hold_lease(lease)
    return Turn.objects.filter(pk=lease.turn_id, stop_requested_at__isnull=False).exists()


@transact
def start_backoff(*, lease: Lease, attempt: int, seconds: float) -> None:
    """Enter the state `backoff`, which pages show, until the next attempt."""
    hold_lease(
        lease,
        state="backoff",
        attempt=attempt,
        retry_at=timezone.now() + timedelta(seconds=seconds),
    )
    raise_version(lease.conversation_id)


@transact
def end_backoff(*, lease: Lease, attempt: int) -> None:
    """Return to the running state after a backoff."""
    hold_lease(lease, state="running", attempt=attempt, retry_at=None)
    raise_version(lease.conversation_id)
