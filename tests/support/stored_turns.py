"""A turn as the services write it: a tool round, a compaction, a rejected summary, an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from conversations.agent.answer import ToolUse
from conversations.agent.ports import Ending, Finish, ModelFailed, Sending, ToolDone
from conversations.agent.usage import Usage
from conversations.context.policy.policy import Policy
from conversations.context.view import edits, wire
from conversations.context.view.edits import SpliceBlocks, Trigger
from conversations.context.view.envelope import build_envelope
from conversations.log import append, leases
from conversations.log.leases import Lease
from conversations.log.turn_state import load_state
from conversations.models import ApiCall, Budget, Conversation, Transformation, Turn, User
from conversations.turns import calls, tool_calls, turns
from conversations.turns.billed_usage import Timing
from tests.support import replayed_turns

MODEL = "claude-sonnet-5-5"
ENVELOPE = build_envelope(model=MODEL, max_tokens=2_000, system="Be brief.")
LONG = "A line of the file with the number of the order, 4711-ÄÖ.\n" * 40


@dataclass(frozen=True, slots=True)
class Played:
    user: User
    conversation: Conversation
    turn: Turn
    lease: Lease


def played(
    name: str = "ada",
    *,
    title: str = "Read the file",
    tool: str = "read_file",
    value: str = "notes.txt",
    result: str = LONG,
    limit: int = 50_000_000,
) -> Played:
    """Play one full turn, or copy a played one (tests/support/replayed_turns.py)."""
    user = User.objects.filter(username=name).first() or User.objects.create(username=name)
    Budget.objects.get_or_create(user=user, is_active=True, defaults={"limit": limit})

    def play() -> Turn:
        turn = turns.start_conversation(
            owner_id=user.pk, model=MODEL, text=title, client_id=uuid4()
        )
        _play(turn, tool, value, result)
        return turn

    turn = replayed_turns.once_more(user, MODEL, repr((title, tool, value, result)), play)
    turn.refresh_from_db()
    return Played(user, turn.conversation, turn, lease_of(turn))


def _play(turn: Turn, tool: str, value: str, result: str) -> None:
    lease = leases.claim_turn(turn_id=turn.pk, owner="test")
    assert lease is not None
    use = ToolUse("toolu_1", tool, wire.encode({"path": value}))
    block = f'{{"type":"tool_use","id":"toolu_1","name":{wire.encode(tool)},"input":{use.input}}}'
    reply(lease, ('{"type":"text","text":"Let me look."}', block), "tool_use", (use,))
    tool_calls.start_tool(lease=lease, tool_use_id=use.id)
    done = ToolDone(wire.encode(result), "ok", {"bytes": len(result)})
    tool_calls.finish_tool(lease=lease, tool_use_id=use.id, done=done)
    results = [{"type": "tool_result", "tool_use_id": use.id, "content": result}]
    append.store_results(lease=lease, content=wire.encode(results), estimate=900)
    compact(lease)
    summarise(lease)
    reply(lease, ('{"type":"text","text":"The order is 4711-ÄÖ."}',), "end_turn")
    turns.finish_turn(lease=lease, finish=Finish("done", "end_turn"))
    turn.refresh_from_db()


def lease_of(turn: Turn) -> Lease:
    """Return the lease that a turn was played under."""
    owner = turn.conversation.owner_id
    return Lease(
        turn.pk,
        turn.conversation_id,
        owner,
        turn.number,
        turn.lease_generation,
        public_id=str(turn.public_id),
    )


def reply(lease: Lease, blocks: tuple[str, ...], reason: str, tools: tuple[Any, ...] = ()) -> None:
    """Open and close one reply call on the current view."""
    view = loaded(lease).view
    sending = Sending("reply", ENVELOPE, view.body, view.tokens, view, 1)
    sent = calls.open_call(lease=lease, sending=sending)
    ending = Ending("complete", Usage(1_000, 50, 200, 100, 0), reason, blocks, tools)
    close(lease, sent.call, ending)


def fail(lease: Lease, text: str) -> None:
    """Open a reply call that the API refuses."""
    view = loaded(lease).view
    sending = Sending("reply", ENVELOPE, view.body, view.tokens, view, 1)
    sent = calls.open_call(lease=lease, sending=sending)
    failure = ModelFailed("invalid_request", text, http_status=400)
    close(lease, sent.call, Ending("error", failure=failure))


def compact(lease: Lease, note: str = "1 old tool result compacted") -> Transformation:
    """Record a compaction of the tool result."""
    view = loaded(lease).view
    shorter = '{"type":"tool_result","tool_use_id":"toolu_1","content":"short"}'
    edit = SpliceBlocks(view.messages[-1].seq, 0, 1, (shorter,))
    trigger = Trigger(41_000, 40_000, "estimated", "input_token_budget")
    change = edits.build_transformation(view, "compaction", trigger, (edit,), note)
    return append.record_transformation(
        lease=lease, change=change, policy=Policy(), summary_call=None
    )


def summarise(lease: Lease, text: str = "They asked for the order.") -> Transformation:
    """Request a summary that is then rejected: its call is recorded and nothing changes."""
    messages = wire.encode([{"role": "user", "content": [{"type": "text", "text": text}]}])
    sent = calls.open_call(
        lease=lease, sending=Sending("summary", ENVELOPE, messages, 100, None, 1)
    )
    close(lease, sent.call, Ending("complete", Usage(300, 20, 0, 0, 0), "end_turn"))
    view = loaded(lease).view
    trigger = Trigger(81_000, 80_000, "reported", "compaction_threshold_tokens")
    change = edits.build_unapplied(
        view, "summary", trigger, "rejected", "longer than what it replaces"
    )
    return append.record_transformation(
        lease=lease, change=change, policy=Policy(), summary_call=sent.call
    )


def close(lease: Lease, call: int, ending: Ending) -> None:
    calls.close_call(lease=lease, call_id=call, ending=ending, timing=Timing(12, 345), effects={})


def loaded(lease: Lease) -> Any:
    return load_state(Conversation.objects.get(pk=lease.conversation_id), MODEL)


def last_call(conversation: Conversation) -> ApiCall:
    return ApiCall.objects.filter(conversation=conversation).latest("pk")
