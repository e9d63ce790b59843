"""Sending in full: a person turns reductions off, once or always, unless the window requires one.

Each choice is an entry of the log without edits, with its actor. *Once* applies to the turn with
the next number, whatever happens to it, so nothing has to be reset afterwards.
"""

from __future__ import annotations

from typing import Literal

from django.db.models import Max

from conversations.context.policy.in_full import build_full_policy
from conversations.context.policy.policy import Policy
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view.edits import Transformation as Change
from conversations.context.view.edits import Trigger
from conversations.db import transact
from conversations.log.chain import lock_conversation
from conversations.log.contents import read_contents
from conversations.log.turn_state import load_state
from conversations.models import Conversation, Transformation
from conversations.reductions.record_change import demand_idle, record_change, refusing_damage

#: The name of the choice, also stored as the setting of its log entry.
FullChoice = Literal["full_once", "full_always", "full_never"]
NOTES: dict[FullChoice, str] = {
    "full_once": mark_recorded(gettext_noop("The next message is sent in full")),
    "full_always": mark_recorded(gettext_noop("From here on every message is sent in full")),
    "full_never": mark_recorded(
        gettext_noop("From here on the context is reduced as the policy says")
    ),
}
CHOICES: tuple[FullChoice, ...] = tuple(NOTES)


def find_next_turn(conversation: Conversation) -> int:
    """Return the number that the next turn will have."""
    noted = read_contents(conversation).last
    if noted is not None:
        return noted + 1
    last: int | None = conversation.turns.aggregate(last=Max("number"))["last"]
    return (last or 0) + 1


def is_in_full(conversation: Conversation, turn: int) -> bool:
    """Return whether a person chose to send this turn in full."""
    return conversation.in_full_always or (turn > 0 and conversation.in_full_turn == turn)


def apply_in_full(policy: Policy, conversation: Conversation, turn: int) -> Policy:
    """Return the policy of a turn, with the person's choice to send in full applied."""
    return build_full_policy(policy) if is_in_full(conversation, turn) else policy


def apply_in_full_ahead(policy: Policy, conversation: Conversation) -> Policy:
    """Return the policy of the next turn, with the person's choice to send in full applied."""
    is_chosen = conversation.in_full_always or conversation.in_full_turn > 0
    # The number of the next turn may cost a query, so it is read only where it decides.
    turn = find_next_turn(conversation) if is_chosen else 0
    return apply_in_full(policy, conversation, turn)


@transact
@refusing_damage()
def choose_in_full(
    *, conversation_id: int, actor_id: int, choice: FullChoice
) -> Transformation | None:
    """Record and store the choice; None when it is set already. Raises ManualChangeError."""
    conversation = lock_conversation(conversation_id)
    demand_idle(conversation)
    before = conversation.in_full_always, conversation.in_full_turn
    following = find_next_turn(conversation)
    always = choice == "full_always"
    after = always, following if choice == "full_once" else 0
    if after == before or (choice == "full_never" and before[1] < following and not before[0]):
        return None
    view = load_state(conversation, conversation.model).view
    size = (view.tokens, view.tokens, view.size, view.size)
    change = Change("restore", Trigger(1, 0, "counted", choice), (), *size, NOTES[choice])
    row = record_change(conversation, change, actor_id)
    Conversation.objects.filter(pk=conversation.pk).update(
        in_full_always=after[0], in_full_turn=after[1]
    )
    return row
