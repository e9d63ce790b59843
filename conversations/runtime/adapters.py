"""The ports of the agent loop, implemented with the domain packages, tools and API client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from conversations.agent.answer import ToolUse
from conversations.agent.approval_rules import ApprovalQuestion
from conversations.agent.events import TurnClosed
from conversations.agent.job import LoadedConversation
from conversations.agent.ports import (
    NO_HEADERS,
    Ending,
    Finish,
    Head,
    Headers,
    Piece,
    Sending,
    Sent,
    ToolDone,
)
from conversations.agent.resume import WRONG
from conversations.budgets.admission import demand_next_call
from conversations.conf import conf
from conversations.context.errors import WireError
from conversations.context.pipeline import Veto
from conversations.context.policy.policy import Policy
from conversations.context.steps.kinds import KINDS
from conversations.context.view import wire
from conversations.context.view.edits import Transformation
from conversations.context.view.searched_originals import SearchedOriginal
from conversations.context.view.view import Message
from conversations.db import run_db, run_db_late, run_db_soon
from conversations.files.workspace import ChatWorkspace, UserWorkspace
from conversations.library.access import load_conversation
from conversations.live.turn_stream import Progress, TurnDisplay
from conversations.log import append
from conversations.log.leases import Lease
from conversations.log.settings_version import reading_settings
from conversations.reductions.pins import list_pins_by_id
from conversations.runtime.begin import BegunTurn
from conversations.signals import collect_vetoes
from conversations.telemetry import spans
from conversations.telemetry.ids import add_log_ids
from conversations.toolbox.approval_checks import check_calls, must_stay_at_host
from conversations.toolbox.approvals import ask_person
from conversations.toolbox.mail_port import Mailboxes
from conversations.transcript.originals import recall_original
from conversations.transcript.search_originals import read_originals, search_originals
from conversations.turns import calls, tool_calls, turns
from conversations.turns.billed_usage import Timing
from conversations.turns.metrics import count_refusals
from tools.framework.outside_access import WebAccess
from tools.framework.tool import Content, FoundOriginal, Tool, ToolContext
from tools.framework.toolset import NO_TOOLS, Toolset
from tools.http.page_cache import PageCaches

if TYPE_CHECKING:
    from conversations.claude.client import Claude
    from conversations.models import Turn

#: For the model, the result of a call whose arguments cannot be read.
DAMAGED = "Not run: the arguments of this call are damaged in the server's database."
#: Characters of a result that are encoded at once.
_SMALL = 50_000
#: Pages that tools have fetched in this process, by person.
PAGES = PageCaches()


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """The end of a turn, stored with its last call, and the turn to run next."""

    finish: Finish
    following: Turn | None


class TurnLog:
    """The Log port: the conversation of one lease.

    It was read when the turn began; until then nobody else could change its path.
    """

    def __init__(self, lease: Lease, begun: BegunTurn) -> None:
        self._lease, self._begun = lease, begun
        #: Read when the turn began, for its first call.
        self._pins: frozenset[str | int] | None = begun.pins

    async def load(self) -> LoadedConversation:
        return self._begun.state

    async def pins(self) -> frozenset[str | int]:
        pins, self._pins = self._pins, None
        if pins is None:
            pins = await run_db(list_pins_by_id, self._lease.conversation_id)
        return pins

    async def record(
        self, transformation: Transformation, policy: Policy, summary_call: int | None
    ) -> Veto | None:
        kind, outcome = transformation.kind, transformation.outcome
        with spans.trace_span("reduction", kind=kind, outcome=outcome):
            return await run_db(self._record, transformation, policy, summary_call)

    def _record(
        self, change: Transformation, policy: Policy, summary_call: int | None
    ) -> Veto | None:
        is_asked = change.outcome == "applied" or (change.outcome == "expected" and change.reason)
        if is_asked and KINDS[change.kind].may_veto:
            reasons = collect_vetoes(self._lease.conversation_id, change)
            if reasons:
                return Veto(reasons)
        append.record_transformation(
            lease=self._lease, change=change, policy=policy, summary_call=summary_call
        )
        return None

    async def store_results(self, content: str) -> Message:
        return await run_db(self._store_results, content)

    def _store_results(self, content: str) -> Message:
        tokens = Message.parse(0, "results", content).tokens
        row = append.store_results(lease=self._lease, content=content, estimate=tokens)
        return Message(row.seq, "results", content, tokens)


class TurnCalls:
    """The Calls and Model ports; one monotonic clock measures how long each call takes."""

    def __init__(
        self,
        lease: Lease,
        claude: Claude,
        tools: Toolset = NO_TOOLS,
        display: TurnDisplay | None = None,
    ) -> None:
        self._lease, self._claude, self._tools, self._display = lease, claude, tools, display
        #: How the turn ended, once that was stored with its last call.
        self.ended: EndedTurn | None = None
        self._opened = 0.0
        self._first: float | None = None
        self._is_held = False
        self._span: Any = None

    async def open(self, sending: Sending) -> Sent:
        if self._display is not None and sending.opens is not None:
            # Published separately, it would need a database thread, for which this would wait.
            self._display.expect_next()
        try:
            with count_refusals():
                sent = await run_db_soon(self._open, sending)
        except Exception:
            if self._display is not None:
                # What was to be shown together with the call is shown by itself.
                await self._display.hold()
            raise
        add_log_ids(call=sent.call)
        self._span = spans.begin_span("model call", purpose=sending.purpose, model=sent.model)
        self._begin()
        return sent

    @reading_settings()
    def _open(self, sending: Sending) -> Sent:
        sent = calls.open_call(lease=self._lease, sending=sending)
        if self._display is not None:
            # What an earlier call has cost may be shown together with this one.
            self._is_held = self._is_held or sent.is_held
            self._display.moves_budgets = self._is_held
            if sending.opens is not None:
                self._display.render_next(sending.opens, conversation=sent.record.conversation)
        return sent

    async def demand(self, sent: Sent) -> None:
        with count_refusals():
            await run_db(demand_next_call, lease=self._lease, call_id=sent.call)

    def _begin(self) -> None:
        self._opened, self._first = time.monotonic(), None

    def _timing(self) -> Timing:
        first = None if self._first is None else _milliseconds(self._first - self._opened)
        return Timing(first, _milliseconds(time.monotonic() - self._opened))

    async def count(self, body: str, headers: Headers = NO_HEADERS) -> int | None:
        return await self._claude.count(body, headers)

    async def stream(
        self, body: str, headers: Headers = NO_HEADERS
    ) -> AsyncGenerator[Head | Piece, None]:
        # Closed together with this generator, so that a stop ends the connection at once.
        async with aclosing(self._claude.stream(body, headers)) as stream:
            async for item in stream:
                if self._first is None and isinstance(item, Piece):
                    self._first = time.monotonic()
                yield item

    async def close(self, sent: Sent, ending: Ending) -> Message | None:
        failure = ending.failure.code if ending.failure else ""
        spans.end_span(self._span, error=failure, status=ending.status)
        facts: Any = {
            "lease": self._lease, "call_id": sent.call, "timing": self._timing(),
            "record": sent.record,
        }  # fmt: skip
        if ending.finish is not None:
            row = await run_db_late(self._finish, ending, ending.finish, facts)
        else:
            effects = self._tools.effects
            row = await run_db(calls.close_call, **facts, ending=ending, effects=effects)
        add_log_ids(call=None)
        return None if row is None else Message(row.seq, "answer", row.content, row.estimate)

    @reading_settings()
    def _finish(self, ending: Ending, finish: Finish, facts: dict[str, Any]) -> Any:
        ended = turns.finish_with_call(**facts, ending=ending, finish=finish)
        self.ended = EndedTurn(finish, ended.following)
        if self._display is not None and ended.following is None:
            last = TurnClosed(self._lease.number)
            self._display.render_next(last, conversation=ended.conversation)
        return ended.answer


class TurnTools:
    """The Tools port: the conversation's toolset, with the user's workspace, mail and web."""

    def __init__(
        self, lease: Lease, tools: Toolset, cancelled: partial[bool], progress: Progress
    ) -> None:
        self._lease, self._tools, self._progress = lease, tools, progress
        #: Idempotency keys of the tool calls that have started.
        self._keys: dict[str, str] = {}
        #: When those of them were first started that another worker had started.
        self._first_starts: dict[str, datetime | None] = {}
        self._context = ToolContext(
            user_id=str(lease.user_id),
            workspace=ChatWorkspace(lease.user_id, lease.conversation_id),
            originals=_Originals(lease.conversation_id),
            web=WebAccess(
                allowed_private=frozenset(conf.fetch_private_hosts),
                find_pages=partial(PAGES.of, str(lease.user_id), conf.fetch_cache_bytes),
            ),
            now=lambda: datetime.now(UTC),
            cancelled=cancelled,
            mail=Mailboxes(lease.user_id),
        )

    async def check_calls(self, uses: Sequence[ToolUse]) -> dict[str, ApprovalQuestion | ToolDone]:
        return await run_db(check_calls, self._lease.turn_id, uses, self._tools)

    async def ask(self, questions: Sequence[ApprovalQuestion]) -> None:
        await run_db(ask_person, lease=self._lease, questions=questions)

    async def started(self, use: ToolUse) -> None:
        tool = self._tools.tools.get(use.name)
        if not self._lease.is_first:
            first = tool_calls.find_first_start
            self._first_starts[use.id] = await run_db(first, self._lease.turn_id, use.id)
        self._keys[use.id] = await run_db(
            tool_calls.start_tool,
            lease=self._lease,
            tool_use_id=use.id,
            origin="" if tool is None else tool.origin,
            is_private=tool is not None and tool.is_private,
        )

    async def run(self, use: ToolUse) -> ToolDone:
        key, progress = self._keys.pop(use.id, ""), self._progress.begin(use.id)
        web = await self._reach(use)
        since = self._first_starts.pop(use.id, None)
        context = replace(self._context, key=key, repeats=since, progress=progress, web=web)
        name = use.name if use.name in self._tools.tools else "unknown"
        try:
            with spans.trace_span("tool call", tool=name):
                result = await self._tools.run(use.name, wire.decode(use.input), context)
        except WireError:
            return ToolDone(wire.encode(DAMAGED), "error")
        finally:
            self._progress.end(use.id)
        content = await _encode(result.content)
        is_wrong = result.details.get("code") in WRONG
        state: Literal["ok", "error"] = "error" if result.is_error else "ok"
        return ToolDone(content, state, result.details, is_wrong)

    async def _reach(self, use: ToolUse) -> WebAccess:
        """Return web access for a call; what may not leave unasked goes to its own host only."""
        tool = self._tools.tools.get(use.name)
        if tool is None or tool.destination is None:
            return self._context.web
        is_held = await run_db(self._must_stay, use, tool)
        return replace(self._context.web, is_held_to_host=is_held)

    def _must_stay(self, use: ToolUse, tool: Tool) -> bool:
        return must_stay_at_host(load_conversation(self._lease.conversation_id), use, tool)

    async def finished(self, use: ToolUse, done: ToolDone) -> None:
        await run_db(tool_calls.finish_tool, lease=self._lease, tool_use_id=use.id, done=done)


async def _encode(content: Content) -> str:
    """Encode a result, which may have megabytes, without delaying the loop."""
    if isinstance(content, str) and len(content) <= _SMALL:
        return wire.encode(content)
    return await asyncio.to_thread(wire.encode, content)


class _Originals:
    def __init__(self, conversation_id: int) -> None:
        self._conversation_id = conversation_id

    async def find(self, id: str) -> str | None:
        return await run_db(self._find, id)

    def _find(self, id: str) -> str | None:
        return recall_original(load_conversation(self._conversation_id), id)

    async def search(self, query: str, most: int) -> list[FoundOriginal]:
        return await search_originals(await run_db(self._read_all), query, most)

    def _read_all(self) -> list[SearchedOriginal]:
        return list(read_originals(load_conversation(self._conversation_id)))


def workspace_for(user_id: int) -> UserWorkspace:
    return UserWorkspace(user_id)


def _milliseconds(seconds: float) -> int:
    return max(0, round(seconds * 1000))
