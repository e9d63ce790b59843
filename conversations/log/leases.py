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

from django.db import connection
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from conversations.agent.stop import Stopped
from conversations.conf import conf
from conversations.db import transact
from conversations.log.page_version import VersionStep, lock_and_raise, raise_version
from conversations.log.prepared_rows import read_rows, shape_of
from conversations.models import ALLOWED, LIVE, Conversation, Turn

#: Turns that a worker has released.
RELEASED = Q(state__in=("running", "tool_wait"), lease_until=None)
#: Raw SQL, because every step of a turn begins with it, and the ORM takes longer to write it than
#: the database takes to run it. By the database's clock, in the form in which Django stores a time.
NOW = {
    "sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW')",
    "postgresql": "STATEMENT_TIMESTAMP()",
}
_UNTIL = {
    "sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW', %s)",
    "postgresql": "STATEMENT_TIMESTAMP() + %s",
}
_RENEW = {
    vendor: f"""
UPDATE conversations_turn SET lease_until = {until}{{changes}}
WHERE id = %s AND lease_generation = %s AND state IN ({{sources}}) RETURNING {{columns}}"""  # noqa: S608
    for vendor, until in _UNTIL.items()
}
_CLAIM = {
    vendor: f"""
UPDATE conversations_turn SET lease_owner = %s, lease_generation = lease_generation + 1,
  lease_until = {until}, claimed_at = {NOW[vendor]}{{begins}}
WHERE id = %s AND {{condition}} RETURNING {{columns}}"""  # noqa: S608 - our own words
    for vendor, until in _UNTIL.items()
}
_BEGINS = ", state = 'running', started_at = {now}"
_IS_QUEUED = "state = 'queued'"
_IS_RELEASED = "state IN ('running', 'tool_wait') AND lease_until IS NULL"


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
    step: VersionStep | None = None

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
    found = claim_and_read(turn_id=turn_id, owner=owner)
    return found[0] if found is not None else None


@transact
def claim_and_read(*, turn_id: int, owner: str) -> tuple[Lease, Conversation] | None:
    """Do as `claim_turn`, and return the turn's conversation too."""
    turn = _claim(turn_id, owner, _BEGINS, _IS_QUEUED)
    if turn is not None:
        row = lock_and_raise(turn.conversation_id)
        # If the prompt was the last change before, one step covers both: the turn shows it too.
        before = turn.version if turn.version == row.version - 1 else row.version
        step = before - 1, row.version
    else:
        turn = _claim(turn_id, owner, "", _IS_RELEASED)
        if turn is None:
            return None
        row = Conversation.objects.get(pk=turn.conversation_id)
        step = row.version, row.version
    ran, name = turn.ran_ms / 1000, str(turn.public_id)
    generation = turn.lease_generation
    return Lease(turn_id, row.pk, row.owner_id, turn.number, generation, ran, name, step), row


def _claim(turn_id: int, owner: str, begins: str, condition: str) -> Turn | None:
    shape = shape_of(Turn)
    statement = _CLAIM[connection.vendor].format(
        begins=begins.format(now=NOW[connection.vendor]),
        condition=condition,
        columns=shape.columns(),
    )
    found = read_rows(shape, statement, [owner, _bind_duration(), turn_id])
    return found[0] if found else None


def _bind_duration() -> object:
    """Return the duration of a lease as this database's statements take it."""
    duration = read_lease_duration()
    words = f"{duration.total_seconds():+.3f} seconds"
    return words if connection.vendor == "sqlite" else duration


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
    hold_lease(lease, state="running", retry_at=None, waits_for="")
    raise_version(lease.conversation_id)
    release_turn(Turn.objects.get(pk=lease.turn_id))


def hold_lease(lease: Lease, *, state: str | None = None, **changes: Any) -> Turn:
    """Renew the lease in the caller's transaction and, with `state`, enter that state.

    Returns the turn, whose row is locked by it. Raises Stopped when the lease is lost or the state
    cannot be entered.
    """
    sources: tuple[str, ...] = LIVE
    if state is not None:
        changes["state"] = state
        sources = tuple(old for old in LIVE if old == state or state in ALLOWED[old])
    shape, names, values = shape_of(Turn), list[str](), list[Any]()
    for name, value in changes.items():
        if isinstance(value, Now):
            names.append(f"{name} = {NOW[connection.vendor]}")
        else:
            names.append(f"{name} = %s")
            field: Any = Turn._meta.get_field(name)
            values.append(field.get_db_prep_save(value, connection))
    places = ", ".join(["%s"] * len(sources))
    statement = _RENEW[connection.vendor].format(
        changes="".join(f", {one}" for one in names), sources=places, columns=shape.columns()
    )
    keys = lease.turn_id, lease.generation
    found = read_rows(shape, statement, [_bind_duration(), *values, *keys, *sources])
    if not found:
        raise Stopped("lease")
    return found[0]


@transact
def renew_lease(*, lease: Lease) -> bool:
    """Renew the lease; return whether a stop was requested."""
    return hold_lease(lease).stop_requested_at is not None


@transact
def start_backoff(*, lease: Lease, attempt: int, seconds: float, waits_for: str = "") -> None:
    """Enter the state `backoff`, which pages show, until the next attempt."""
    hold_lease(
        lease,
        state="backoff",
        attempt=attempt,
        retry_at=timezone.now() + timedelta(seconds=seconds),
        waits_for=waits_for,
    )
    raise_version(lease.conversation_id)


@transact
def end_backoff(*, lease: Lease, attempt: int) -> None:
    """Return to the running state after a backoff."""
    hold_lease(lease, state="running", attempt=attempt, retry_at=None, waits_for="")
    raise_version(lease.conversation_id)
