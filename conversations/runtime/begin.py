"""The beginning of a turn: its claim, and all that it begins with, read at once and carried.

It is one piece of work in one thread. While a turn is live nobody else changes the path of its
conversation, so its loop goes on with what was read here and with what it appends itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from conversations.agent.job import LoadedConversation
from conversations.log import leases
from conversations.log.contents import note_contents
from conversations.log.fold_cache import CachedFold, fold_cache
from conversations.log.leases import Lease
from conversations.log.settings_version import reading_settings
from conversations.log.turn_state import load_turn_state
from conversations.reductions.conversation_settings import JobFacts, read_facts_of
from conversations.reductions.pins import list_pins

if TYPE_CHECKING:
    from conversations.models import Conversation


@dataclass(frozen=True, slots=True)
class BegunTurn:
    """What a turn begins with: settings, conversation, and the pins of its first call."""

    facts: JobFacts
    state: LoadedConversation
    pins: frozenset[str | int]
    #: Whether the conversation has another title than its first words.
    is_named: bool
    conversation: UUID
    #: What the next turn can go on with.
    fold: CachedFold | None


@dataclass(frozen=True, slots=True)
class ClaimedTurn:
    """A claimed turn; `begun` is the error instead if it could not be read."""

    lease: Lease
    begun: BegunTurn | Exception

    @property
    def may_be_named(self) -> bool:
        """Return whether the conversation may still get a title."""
        return isinstance(self.begun, Exception) or not self.begun.is_named

    def cache_fold(self) -> None:
        """Cache for the next turn what this one, which has ended, began with."""
        begun = self.begun
        if isinstance(begun, BegunTurn) and begun.fold is not None:
            fold_cache.put(begun.conversation, begun.fold)

    def demand_begun(self) -> BegunTurn:
        """Return what it begins with, or raise the error."""
        if isinstance(self.begun, Exception):
            raise self.begun
        return self.begun


def claim_turn(*, turn_id: int, owner: str) -> ClaimedTurn | None:
    """Claim a waiting turn and read what it begins with; None when there is nothing to do."""
    found = leases.claim_and_read(turn_id=turn_id, owner=owner)
    if found is None:
        return None
    lease, conversation = found
    try:
        return ClaimedTurn(lease, begin_turn(lease, conversation))
    except Exception as error:
        # The turn is ours by now, so it ends with this error.
        return ClaimedTurn(lease, error)


@reading_settings()
def begin_turn(lease: Lease, conversation: Conversation) -> BegunTurn:
    """Read what a claimed turn begins with; raises ContextError and errors of the database."""
    note_contents(conversation)
    state, fold = load_turn_state(conversation, conversation.model)
    pins = list_pins(conversation)
    # Last, because it leaves the conversation with the model that continues after a refusal.
    is_named = conversation.titled_by != "words"
    facts = read_facts_of(conversation, lease.number)
    return BegunTurn(facts, state, pins, is_named, conversation.public_id, fold)
