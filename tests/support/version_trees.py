"""Conversations with versions, played through the services."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from conversations.agent.ports import Finish
from conversations.audit.verify import Tally, verify_everything
from conversations.context.view import wire
from conversations.context.view.view import View
from conversations.log.leases import Lease
from conversations.log.path import fold_path, read_path
from conversations.models import Conversation, Turn
from conversations.transcript import transcript
from conversations.turns import turns
from conversations.turns.prompts import SendError
from conversations.turns.versions import edit_prompt, regenerate_answer
from tests.support import people_and_turns, stored_turns


def refused(code: str) -> Any:
    return pytest.raises(SendError, check=lambda error: error.code == code)


def talk(*texts: str) -> Conversation:
    """Play turns of one answer each; an answer repeats its prompt."""
    lease = people_and_turns.started_turn(people_and_turns.person(), texts[0])
    say(lease)
    for text in texts[1:]:
        say(people_and_turns.next_turn(people_and_turns.conversation_of(lease), text))
    return people_and_turns.conversation_of(lease)


def say(lease: Lease, text: str = "") -> None:
    words = text or f"Answer of turn {lease.number}"
    ending = people_and_turns.complete(wire.encode({"type": "text", "text": words}))
    stored_turns.close(lease, people_and_turns.opened(lease).call, ending)
    turns.finish_turn(lease=lease, finish=Finish("done", "end_turn"))


def answered(turn: Turn) -> Turn:
    say(people_and_turns.claimed(turn))
    turn.refresh_from_db()
    return turn


def turn(conversation: Conversation, number: int) -> Turn:
    return conversation.turns.get(number=number)


def again(conversation: Conversation, number: int) -> Turn:
    return answered(regenerate_answer(turn=turn(conversation, number)))


def edited(conversation: Conversation, number: int, text: str) -> Turn:
    old = turn(conversation, number)
    return answered(edit_prompt(turn=old, text=text, client_id=uuid4()))


def fresh(conversation: Conversation) -> Conversation:
    return Conversation.objects.get(pk=conversation.pk)


def shown(conversation: Conversation) -> list[int]:
    found = transcript.read_transcript(fresh(conversation)).turns
    return [one.number for one in found]


def view(conversation: Conversation, tip: int | None = None) -> View:
    return fold_path(read_path(fresh(conversation), tip))


def clean() -> bool:
    return list(verify_everything(Tally())) == []
