"""People, turns and groups of threads for tests of what is stored."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Any, TypeVar
from uuid import uuid4

from django.apps import apps
from django.db import connection
from django.db.models import Model

from conversations.agent.answer import ToolUse
from conversations.agent.ports import Ending, Finish, Sending, Sent
from conversations.agent.usage import Usage
from conversations.context.view import wire
from conversations.context.view.envelope import Envelope
from conversations.log import leases
from conversations.log.leases import Lease
from conversations.models import Budget, Conversation, Session, Turn, User
from conversations.turns import calls, turns
from tests.support import stored_turns

T = TypeVar("T")
USAGE = Usage(100, 20, 0, 0, 0)
ANSWER = '{"type":"text","text":"Here you are."}'


def person(name: str = "ada", **fields: Any) -> User:
    return User.objects.create(username=name, **fields)


def limited(user: User, limit: int, period: str = "month", **fields: Any) -> Budget:
    """Create a personal allowance."""
    return Budget.objects.create(user=user, limit=limit, period=period, **fields)


def queued(user: User, text: str = "Hello") -> Turn:
    return turns.start_conversation(
        owner_id=user.pk, model=stored_turns.MODEL, text=text, client_id=uuid4()
    )


def claimed(turn: Turn) -> Lease:
    lease = leases.claim_turn(turn_id=turn.pk, owner="test")
    assert lease is not None
    return lease


def started_turn(user: User | None = None, text: str = "Hello") -> Lease:
    return claimed(queued(user or person(), text))


def next_turn(conversation: Conversation, text: str = "And then?") -> Lease:
    return claimed(turns.send_prompt(conversation=conversation, text=text, client_id=uuid4()))


def sending(lease: Lease, envelope: Envelope = stored_turns.ENVELOPE) -> Sending:
    """Make a reply request of the current view."""
    view = stored_turns.loaded(lease).view
    return Sending("reply", envelope, view.body, view.tokens, view, 1)


def opened(lease: Lease, envelope: Envelope = stored_turns.ENVELOPE) -> Sent:
    return calls.open_call(lease=lease, sending=sending(lease, envelope))


def complete(*blocks: str, usage: Usage | None = USAGE) -> Ending:
    return Ending("complete", usage, "end_turn", blocks or (ANSWER,))


def tool_call_ending(*ids: str, name: str = "list_files") -> Ending:
    """Make the ending of an answer that calls tools."""
    uses = tuple(ToolUse(use, name, "{}") for use in ids)
    blocks = tuple(
        wire.encode({"type": "tool_use", "id": use, "name": name, "input": {}}) for use in ids
    )
    return Ending("complete", USAGE, "tool_use", blocks, uses)


def results(*ids: str) -> str:
    return wire.encode([{"type": "tool_result", "tool_use_id": use, "content": "x"} for use in ids])


def answered(lease: Lease) -> None:
    """Play the rest of a turn: one plain answer."""
    stored_turns.close(lease, opened(lease).call, complete())
    turns.finish_turn(lease=lease, finish=Finish("done", "end_turn"))


def conversation_of(lease: Lease) -> Conversation:
    return Conversation.objects.get(pk=lease.conversation_id)


def turn_of(lease: Lease) -> Turn:
    return Turn.objects.get(pk=lease.turn_id)


def everything(*, but: Collection[type[Model]] = ()) -> dict[str, list[tuple[Any, ...]]]:
    """Return every stored row of the app but those of some tables, to see that nothing changed.

    Sessions are left out: whoever asks has one.
    """
    found = {}
    with connection.cursor() as cursor:
        for kind in apps.get_app_config("conversations").get_models():
            if kind in (Session, *but):
                continue
            table, key = kind._meta.db_table, kind._meta.pk.column
            cursor.execute(f'SELECT * FROM "{table}" ORDER BY "{key}"')
            found[kind.__name__] = cursor.fetchall()
    return found


def crowd(size: int, work: Callable[[int], T]) -> list[T | Exception]:
    """Run `work` in `size` concurrent threads, each with its own connection."""
    found: list[T | Exception] = [RuntimeError("never ran")] * size
    gate = threading.Barrier(size)

    def one(at: int) -> None:
        try:
            gate.wait(timeout=60)
            found[at] = work(at)
        except Exception as error:
            found[at] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=one, args=(at,)) for at in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    return found


def failures(found: list[T | Exception]) -> list[Exception]:
    return [each for each in found if isinstance(each, Exception)]
