"""Turns that wait for a person's approval, for tests of what is stored."""

from __future__ import annotations

from typing import Any

from conversations.agent.answer import ToolUse
from conversations.agent.approval_rules import ApprovalQuestion
from conversations.agent.ports import Ending, ToolDone
from conversations.context.view import wire
from conversations.log import append
from conversations.log.leases import Lease
from conversations.models import Approval
from conversations.toolbox import approvals
from conversations.toolbox.approval_checks import check_calls
from conversations.turns import calls, tool_calls
from conversations.turns.billed_usage import Timing
from tests.support import people_and_turns
from tools.framework.registry import TOOLS
from tools.framework.toolset import Toolset

CallSpec = tuple[str, str, dict[str, Any]]
FIRE: CallSpec = ("f", "fire", {})
POST: CallSpec = ("p", "post", {"to": "a@b.example", "text": "Hello"})
VISIT: CallSpec = ("v", "visit", {"host": "evil.example:443"})
DIARY: CallSpec = ("d", "read_diary", {})


def uses(*specs: CallSpec) -> tuple[ToolUse, ...]:
    return tuple(ToolUse(key, name, wire.encode(value)) for key, name, value in specs)


def calling(lease: Lease, *specs: CallSpec) -> tuple[ToolUse, ...]:
    """Store an answer that makes these calls."""
    found = uses(*specs)
    blocks = tuple(
        wire.encode({"type": "tool_use", "id": key, "name": name, "input": value})
        for key, name, value in specs
    )
    calls.close_call(
        lease=lease,
        call_id=people_and_turns.opened(lease).call,
        ending=Ending("complete", people_and_turns.USAGE, "tool_use", blocks, found),
        timing=Timing(1, 2),
        effects={name: tool.effect for name, tool in TOOLS.items()},
    )
    return found


def check(lease: Lease, found: tuple[ToolUse, ...]) -> dict[str, ApprovalQuestion | ToolDone]:
    return check_calls(lease.turn_id, found, Toolset(TOOLS))


def done(lease: Lease, *names: str, is_private: bool = False) -> None:
    """Play a round to its end."""
    for name in names:
        tool_calls.start_tool(lease=lease, tool_use_id=name, is_private=is_private)
        tool_calls.finish_tool(lease=lease, tool_use_id=name, done=ToolDone('"ok"', "ok"))
    append.store_results(lease=lease, content=people_and_turns.results(*names), estimate=1)


def waiting_turn(*specs: CallSpec, text: str = "Hello") -> tuple[Lease, list[Approval]]:
    """Return a turn that waits for a person."""
    lease = people_and_turns.started_turn(text=text)
    return lease, ask(lease, *specs)


def ask(lease: Lease, *specs: CallSpec) -> list[Approval]:
    found = check(lease, calling(lease, *specs))
    approvals.ask_person(
        lease=lease, questions=[one for one in found.values() if isinstance(one, ApprovalQuestion)]
    )
    return list(Approval.objects.filter(call__turn_id=lease.turn_id, decision=None).order_by("pk"))
