"""Conversations for tests of manual changes of the context, with one-line functions for these."""

from __future__ import annotations

import random
from typing import Any

import pytest

from conversations.agent.ports import Ending, Sending, Sent
from conversations.agent.usage import Usage
from conversations.audit.verify import Tally, verify_everything
from conversations.context.view import wire
from conversations.context.view.view import View
from conversations.log import append
from conversations.log.path import fold_path, read_path
from conversations.models import Conversation, Proposal, Transformation
from conversations.reductions import manual_changes, proposals
from conversations.reductions.preview import build_offer
from conversations.reductions.record_change import ManualChangeError
from conversations.transfer.importing import import_recording
from conversations.transfer.recordings import parse_recording
from conversations.turns import side_calls
from conversations.turns.billed_usage import Timing
from tests.support import people_and_turns, stored_turns
from tests.support.stored_turns import LONG, Played

WORDS = "They read the file and spoke of order 4711. " * 3


def talk(played: Played, turns: int = 4, seed: int = 0) -> Played:
    """Play more turns, some of them with a tool."""
    chance = random.Random(seed)
    for at in range(turns):
        lease = people_and_turns.next_turn(now(played), f"And then {at}? " + "words " * 100)
        if at < 2 or chance.random() < 0.6:
            use = f"toolu_{at + 2}"
            sent = people_and_turns.opened(lease)
            stored_turns.close(lease, sent.call, people_and_turns.tool_call_ending(use))
            long = [{"type": "tool_result", "tool_use_id": use, "content": LONG * (at + 1)}]
            append.store_results(lease=lease, content=wire.encode(long), estimate=900)
        people_and_turns.answered(lease)
    return played


def import_talk(*before: dict[str, Any]) -> Conversation:
    """Import a recording with two long tool results, which has called no model here."""
    said = list(before)
    for number in range(2):
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": "look", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": LONG * 9}
        said += [
            {"role": "user", "content": f"Look at {number}"},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": f"It says {number}."},
        ]
    recording = parse_recording({"id": "a", "messages": said})
    user = people_and_turns.person()
    return import_recording(user=user, recording=recording, model=stored_turns.MODEL)


def now(played: Played) -> Conversation:
    return Conversation.objects.get(pk=played.conversation.pk)


def view(played: Played) -> View:
    return fold_path(read_path(now(played)))


def digest(played: Played) -> str:
    return wire.digest(view(played).body)


def who(played: Played) -> dict[str, int]:
    return {"conversation_id": played.conversation.pk, "actor_id": played.user.pk}


def compact(played: Played, wanted: Any = "results") -> Transformation:
    made = build_offer(now(played), wanted).preview
    assert made is not None
    row = manual_changes.compact_now(**who(played), wanted=wanted, digest=made.digest)
    assert digest(played) == made.digest
    return row


def refused(act: Any) -> ManualChangeError:
    before = people_and_turns.everything()
    with pytest.raises(ManualChangeError) as caught:
        act()
    assert people_and_turns.everything() == before
    return caught.value


def clean() -> bool:
    return list(verify_everything(Tally())) == []


def pending_summary(played: Played, target: int = 0) -> tuple[proposals.SummaryRequest, Sent]:
    """Request a summary, up to the open call."""
    key, is_new = proposals.request_summary(**who(played), target=target)
    request = proposals.read_request(proposal_id=key)
    assert is_new
    assert request is not None
    wanted = next(request.steps)
    text = wire.encode([{"role": "user", "content": [{"type": "text", "text": wanted.text}]}])
    sending = Sending("summary", stored_turns.ENVELOPE, text, 500, None, 1)
    return request, proposals.open_summary_call(request=request, sending=sending)


def proposed(played: Played, text: str = WORDS, target: int = 0) -> str:
    """Propose a summary, and return the digest of the view that applying it would give."""
    request, sent = pending_summary(played, target)
    ending = Ending("complete", Usage(500, 60, 0, 0, 0), "end_turn")
    side_calls.close_side_call(call_id=sent.call, ending=ending, timing=Timing(5, 50))
    proposals.store_answer(proposal_id=request.proposal_id, text=text, change=None)
    made = build_offer(now(played), "summary").proposed
    assert made is not None
    assert made.preview is not None, made.reason
    return made.preview.digest


def summarise(played: Played) -> Transformation:
    row = proposals.apply_proposal(**who(played), digest=proposed(played))
    assert not Proposal.objects.exists()
    return row
