"""Bodies rebuilt for verification: digests that grow, and marks that move."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

import pytest

from conversations.agent.ports import Finish
from conversations.audit.request_bodies import IncrementalDigest
from conversations.audit.verify import Tally, verify_everything
from conversations.context.view import cache_breakpoints, wire
from conversations.context.view.envelope import join_body
from conversations.context.view.view import Message, View
from conversations.log import leases
from conversations.log.rebuild import rebuild_request
from conversations.models import Conversation
from conversations.turns import turns
from tests.support.stored_turns import ENVELOPE, last_call, played, reply

pytestmark = pytest.mark.django_db


def test_a_growing_digest_is_that_of_the_body() -> None:
    growing, view = IncrementalDigest(), View()
    texts = [ENVELOPE.text, ENVELOPE.with_limit(5).text]
    kinds: Any = ("prompt", "answer", "results")
    for seq in range(1, 30):
        content = "[]" if seq % 5 == 0 else f'[{{"type":"text","text":"nr {seq} ÄÖ€😀"}}]'
        branch = view.append(Message(seq, "prompt", "[]", 1))
        view = view.append(Message(seq, kinds[seq % 3], content, 1))
        for shown in (view, branch) if seq % 4 == 0 else (view,):
            text = texts[seq % 7 == 0]
            whole = join_body(text, shown.body)
            assert growing.digest(text, shown) == (wire.digest(whole), len(whole.encode()))


def test_a_growing_digest_follows_the_marks_that_move() -> None:
    growing, view, moved = IncrementalDigest(), View(), set[int]()
    counts = [1, 1, 1, 25, 12, 12, 3, 12, 2, 1, 1, 30, 1, 1, 1, 10, 10, 1, 1]
    for seq, count in enumerate(counts, 1):
        content = wire.encode([{"type": "text", "text": f"nr {seq} €"}] * count)
        view = view.append(Message(seq, "answer" if seq % 2 == 0 else "prompt", content, 1))
        if seq % 3 == 0:
            view = view.append(Message(seq, "prompt", "[]", 1))
        whole = join_body(ENVELOPE.text, view.body)
        assert growing.digest(ENVELOPE.text, view) == (wire.digest(whole), len(whole.encode()))
        moved.add(view.body.find(cache_breakpoints.MARKS["5m"]))
    assert len(moved) > 3


def test_a_body_with_a_mark_in_its_messages_is_rebuilt() -> None:
    place = played()
    for text in ("Tell me all of it.", "And then?"):
        conversation = Conversation.objects.get(pk=place.conversation.pk)
        turn = turns.send_prompt(conversation=conversation, text=text, client_id=uuid4())
        lease = leases.claim_turn(turn_id=turn.pk, owner="test")
        assert lease is not None
        reply(lease, tuple(f'{{"type":"text","text":"part {n}"}}' for n in range(30)), "end_turn")
        turns.finish_turn(lease=lease, finish=Finish("done", "end_turn"))
    call = last_call(place.conversation)
    text = rebuild_request(call).body
    assert text.split('"messages":')[1].count(cache_breakpoints.MARKS["5m"]) == 1
    assert wire.digest(text) == call.body_digest
    assert list(verify_everything(Tally())) == []


def test_verification_is_linear_in_the_calls() -> None:
    growing, view, fed = IncrementalDigest(), View(), 0
    text = wire.encode([{"type": "text", "text": "word " * 2_000}])
    started = time.thread_time()
    for seq in range(1, 2_001):
        view = view.append(Message(seq, "prompt", text, 1))
        growing.digest(ENVELOPE.text, view)
        fed += len(text)
    assert fed == 2_000 * len(text)
    assert time.thread_time() - started < 10
