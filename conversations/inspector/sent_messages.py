"""One call's messages as they were sent, each block with its origin.

A reply call sends the view at its tip, so its path is replayed with provenance. Other calls store
their own messages, which have no originals in the log and are listed as stored. Damaged rows give a
problem as text, never an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from conversations.context.errors import RuleError
from conversations.context.view import edits, rules, wire
from conversations.context.view.provenance import Provenance, Sent, Step, trace_blocks
from conversations.context.view.view import Kind, Message, View
from conversations.log.findings import DAMAGE, reraise_outage
from conversations.log.path import Change, read_path
from conversations.log.rebuild import RebuiltRequest, rebuild_request
from conversations.models import ApiCall, Conversation

T = TypeVar("T")
_KINDS: dict[str, Kind] = {"user": "prompt", "assistant": "answer"}


@dataclass(frozen=True, slots=True)
class TracedCall:
    """The messages of a call; `is_own`: stored with the call, not a view of the log."""

    found: Provenance
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class Proof:
    """A verification: the body against its digest, the messages against the API's rules."""

    rebuilt: RebuiltRequest
    is_same: bool
    #: The first rule of the API that the messages break; "" when they keep all.
    broken: str = ""


def catch_damage(read: Callable[[], T]) -> tuple[T | None, str]:
    """Return the result of `read` and "", or None and the problem with its rows."""
    try:
        return read(), ""
    except DAMAGE as error:
        reraise_outage(error)
        return None, f"{type(error).__name__}: {error}"


def list_steps(entries: Iterable[Message | Change]) -> list[Message | Step]:
    """Return the entries that changed the view; rejected and vetoed ones are left out."""
    found: list[Message | Step] = []
    for entry in entries:
        if isinstance(entry, Message):
            found.append(entry)
        elif entry.outcome == "expected":
            found.append(Step(entry.seq, entry.kind, cleared=tuple(entry.reason.split())))
        elif entry.outcome == "applied":
            found.append(Step(entry.seq, entry.kind, edits.load_edits(entry.edits)))
    return found


def trace_call(call: ApiCall) -> TracedCall:
    """Trace the messages of a call; raises one of DAMAGE."""
    if call.messages is not None:
        return TracedCall(_trace_own(call.messages.text), is_own=True)
    return TracedCall(trace_blocks(list_steps(read_path(call.conversation, call.tip))))


def trace_present(conversation: Conversation) -> Provenance:
    """Trace the messages that the next request would send; raises one of DAMAGE."""
    return trace_blocks(list_steps(read_path(conversation)))


def verify_call(call: ApiCall, found: Provenance) -> Proof:
    """Rebuild the body and compare it with the record."""
    body = rebuild_request(call, None if call.messages is not None else found.view)
    is_same = not body.problem and (body.digest, body.size) == (call.body_digest, call.body_bytes)
    try:
        if found.view.length and found.view.messages[-1].kind == "answer":
            # A request for the API's compaction ends with an answer.
            rules.check_head(found.view)
        else:
            rules.check_rules(found.view)
    except RuleError as error:
        return Proof(body, is_same, str(error))
    return Proof(body, is_same)


def _trace_own(text: str) -> Provenance:
    """List the messages of a call that are not a view, numbered from 1."""
    view = View()
    for seq, value in enumerate(wire.decode(text), start=1):
        content = value["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        view = view.append(Message.parse(seq, _KINDS[value["role"]], wire.encode(blocks)))
    return Provenance(view, tuple(_list_sent(view.messages)), (), view.length)


def _list_sent(messages: Sequence[Message]) -> Iterable[Sent]:
    for message in messages:
        for at, block in enumerate(message.blocks):
            yield Sent(message.seq, message.kind, at, block, None, 0, "put in")
