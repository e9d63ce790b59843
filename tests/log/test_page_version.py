"""The page version: what changes a page raises it, and who publishes that has the step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import copy_context
from uuid import uuid4

import pytest

from conversations.agent.answer import ToolUse
from conversations.agent.ports import Ending, Finish, ToolDone
from conversations.context.view import wire
from conversations.library.conversations import delete_conversation, rename_conversation
from conversations.live.render import render_snapshot
from conversations.log import append, leases
from conversations.log.page_version import (
    MOST,
    keep_own_steps,
    raise_version,
    read_versions,
    take_step,
)
from conversations.models import Conversation, Turn
from conversations.reductions.pins import pin_originals, unpin_originals
from conversations.toolbox.egress import switch_egress
from conversations.transcript.shapes import Bookmark
from conversations.turns import takeovers, titles, tool_calls, turns
from conversations.turns.drafts import save_draft
from conversations.turns.queue import send_next_prompt, withdraw_prompt
from conversations.turns.versions import regenerate_answer, show_version
from tests.support import people_and_turns, stored_turns, version_trees
from tests.support.people_and_turns import claimed, person, queued, turn_of

pytestmark = pytest.mark.django_db(transaction=True)
Act = Callable[[], object]
USE = ToolUse("toolu_1", "read_file", '{"path":"notes.md"}')
CALL = f'{{"type":"tool_use","id":"toolu_1","name":"read_file","input":{USE.input}}}'
FILE = '{"type":"text","text":"' + "words " * 400 + '"}'


def a_turn_with_a_tool() -> Iterator[tuple[Conversation, Act]]:
    turn = queued(person())
    conversation, key = turn.conversation, turn.conversation_id
    found: list[leases.Lease] = []
    yield conversation, lambda: found.append(claimed(turn))
    lease = found[0]
    yield conversation, lambda: leases.start_backoff(lease=lease, attempt=2, seconds=3)
    yield conversation, lambda: leases.end_backoff(lease=lease, attempt=2)
    calls: list[int] = []
    yield conversation, lambda: calls.append(people_and_turns.opened(lease).call)
    ending = Ending("complete", people_and_turns.USAGE, "tool_use", (CALL,), (USE,))
    yield conversation, lambda: stored_turns.close(lease, calls[0], ending)
    yield conversation, lambda: tool_calls.start_tool(lease=lease, tool_use_id="toolu_1")
    done = ToolDone(wire.encode(f"[{FILE}]"), "ok")
    yield (
        conversation,
        lambda: tool_calls.finish_tool(lease=lease, tool_use_id="toolu_1", done=done),
    )
    results = wire.encode(
        [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "words " * 400}]
    )
    yield conversation, lambda: append.store_results(lease=lease, content=results, estimate=900)
    yield conversation, lambda: stored_turns.compact(lease)
    send = {"conversation": conversation, "client_id": uuid4()}
    yield conversation, lambda: turns.send_prompt(text="And then?", **send)
    yield conversation, lambda: people_and_turns.answered(lease)
    following = Turn.objects.get(conversation=key, number=2)
    yield conversation, lambda: turns.request_stop(turn=following)
    owned = {"conversation_id": key, "actor_id": conversation.owner_id, "ids": ["toolu_1"]}
    yield conversation, lambda: pin_originals(**owned)
    yield conversation, lambda: unpin_originals(**owned)


def what_others_do() -> Iterator[tuple[Conversation, Act]]:
    conversation = version_trees.talk("One", "Two")
    key = conversation.pk
    yield conversation, lambda: titles.name_conversation(conversation_id=key, title="By the model")
    yield conversation, lambda: rename_conversation(conversation=conversation, title="By a person")
    yield conversation, lambda: switch_egress(conversation_id=key, asks=True)
    second = version_trees.turn(conversation, 2)
    yield conversation, lambda: regenerate_answer(turn=second)
    lease = claimed(Turn.objects.get(conversation=key, number=3))
    yield (
        conversation,
        lambda: turns.finish_turn(lease=lease, finish=Finish("failed", "", "x", "y")),
    )
    yield conversation, lambda: show_version(turn=second)
    lease = people_and_turns.next_turn(conversation)
    send = {"conversation": conversation, "text": "And then?", "client_id": uuid4()}
    yield conversation, lambda: turns.send_prompt(**send)
    yield (
        conversation,
        lambda: withdraw_prompt(conversation=conversation, client_id=send["client_id"]),
    )
    turns.send_prompt(**send | {"client_id": uuid4()})
    yield (
        conversation,
        lambda: takeovers.take_over_turn(turn_id=lease.turn_id, everything=True),
    )
    yield conversation, lambda: send_next_prompt(conversation=conversation)
    assert turn_of(lease).state == "interrupted"


@pytest.mark.parametrize("acts", [a_turn_with_a_tool, what_others_do])
def test_what_changes_a_page_raises_the_version_in_one_step(
    acts: Callable[[], Iterator[tuple[Conversation, Act]]],
) -> None:
    changes = 0
    for conversation, act in acts():
        key = conversation.pk
        version, page = read_versions([key])[key], render_snapshot(key, Bookmark(), None)
        assert page.version == version
        take_step(key)
        act()
        now, fresh = read_versions([key])[key], render_snapshot(key, Bookmark(), None)
        if fresh.html != page.html:
            changes += 1
            assert now > version
        assert take_step(key) == ((version, now) if now > version else None)
        assert take_step(key) is None
    assert changes >= 8


def test_a_lease_has_the_step_that_shows_its_turn() -> None:
    lease = people_and_turns.started_turn()
    assert lease.step == (0, 2)
    people_and_turns.answered(lease)
    conversation = people_and_turns.conversation_of(lease)
    version = conversation.version
    turn = turns.send_prompt(conversation=conversation, text="On", client_id=uuid4())
    rename_conversation(conversation=conversation, title="Meanwhile")
    assert isinstance(turn, Turn)
    # A page may lack the name, too: so the turn is no step from before its prompt.
    assert claimed(turn).step == (version + 2, version + 3)


def test_text_on_its_way_raises_nothing() -> None:
    lease = people_and_turns.started_turn()
    people_and_turns.opened(lease)
    before = read_versions([lease.conversation_id])
    for text in ("Here", "Here you are"):
        save_draft(lease=lease, text=text, thinking="")
    assert read_versions([lease.conversation_id]) == before


def test_what_is_in_the_trash_has_no_version() -> None:
    conversation = version_trees.talk("One")
    assert list(read_versions([conversation.pk, 0])) == [conversation.pk]
    delete_conversation(conversation=conversation)
    assert read_versions([conversation.pk]) == {}


def test_steps_are_joined_unless_somebody_else_came_between() -> None:
    key = version_trees.talk("One").pk
    take_step(key)
    first = raise_version(key)
    raise_version(key)
    assert take_step(key) == (first - 1, first + 1)
    mine = raise_version(key)
    copy_context().run(_raise_for_another, key)
    raise_version(key)
    assert take_step(key) == (mine + 1, mine + 2)


def _raise_for_another(key: int) -> None:
    keep_own_steps()
    assert take_step(key) is None
    raise_version(key)


def test_steps_that_nobody_publishes_do_not_pile_up() -> None:
    key = version_trees.talk("One").pk
    raise_version(key)
    for number in range(MOST):
        raise_version(-number)
    assert take_step(key) is None
