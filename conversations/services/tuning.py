"""The settings of one conversation: its model, its instructions, its context policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from conversations.context import wire
from conversations.context.view import Message
from conversations.models import Conversation
from conversations.queries.path import path
from conversations.queries.pins import pins
from conversations.services.chain import locked
from conversations.services.log import storable
from conversations.services.pins import demand_room


@transaction.atomic
def change_settings(
    *, conversation_id: int, model: str, instructions: str, policy: Mapping[str, Any]
) -> Conversation:
    """Set what the next turns run with; raises HandError when the pins do not fit the model.

    A turn that is on its way keeps what it began with. Every call records its model and parameters,
    every transformation its policy, so what counted at any moment stays known.
    """
    conversation = locked(conversation_id)
    held = pins(conversation) if model != conversation.model else frozenset()
    conversation.model, conversation.policy = model, dict(policy)
    conversation.instructions = storable(wire.clean(instructions))
    if held:
        log = [entry for entry in path(conversation) if isinstance(entry, Message)]
        demand_room(conversation, log, held)
    conversation.save(update_fields=["model", "instructions", "policy", "updated_at"])
    return conversation
