"""In-memory fakes of the runner's ports: they record their calls and give prepared answers.

The log is a real log, folded by the engine's own functions, so a test can rebuild what was sent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from conversations.agent.answer import ToolUse
from conversations.agent.approval_rules import ApprovalQuestion
from conversations.agent.events import Event
from conversations.agent.job import Caps, Job, LoadedConversation
from conversations.agent.loop import Runner
from conversations.agent.ports import (
    NO_HEADERS,
    Ending,
    Finish,
    Head,
    Headers,
    Piece,
    Ports,
    Refused,
    Sending,
    Sent,
    ToolDone,
)
from conversations.agent.resume import TurnProgress
from conversations.agent.stop import Switch
from conversations.context.pipeline import Veto
from conversations.context.policy.gauge import Report
from conversations.context.policy.policy import PRESETS, Policy
from conversations.context.view import edits, wire
from conversations.context.view.edits import Transformation
from conversations.context.view.envelope import Envelope, build_envelope, join_body
from conversations.context.view.view import Kind, Message, View

Step = dict[str, Any] | BaseException | Callable[[], Awaitable[object]]
Script = Sequence[Step]
REPLY, SUMMARY = "reply-model", "summary-model"
TOOLS = [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}]


def job(
    policy: Policy = PRESETS["off"],
    window: int = 200_000,
    model: str = REPLY,
    max_output: int = 0,
    **caps: Any,
) -> Job:
    """A job for the fakes; another model than theirs thinks as the product asks it to."""
    thinking = None if model == REPLY else {"type": "adaptive", "display": "summarized"}

    prefix: dict[str, Any] = {"model": model, "system": "Be brief.", "tools": TOOLS}
    reply = build_envelope(max_tokens=1_000, thinking=thinking, **prefix)

    def summary(system: str, max_tokens: int) -> Envelope:
        return build_envelope(model=SUMMARY, max_tokens=max_tokens, system=system, cached=False)

    return Job(model, window, policy, reply, summary, Caps(**caps), max_output)


def blocks(*texts: str) -> str:
    return wire.encode([{"type": "text", "text": text} for text in texts])


@dataclass
class FakeLog:
    entries: list[Message | Transformation] = field(default_factory=list)
    recorded: list[tuple[Transformation, int | None]] = field(default_factory=list)
    report: Report | None = None
    bound_to: str = ""
    called_at: float = 0.0
    edited_from: int | None = None
    pinned: frozenset[str | int] = frozenset()
    veto: Callable[[Transformation], str] = lambda _: ""
    fails: BaseException | None = None

    def put(self, kind: Kind, content: str) -> Message:
        message = Message.parse(len(self.entries) + 1, kind, content)
        self.entries.append(message)
        return message

    def view(self, tip: int | None = None) -> View:
        view = View()
        for entry in self.entries[:tip]:
            if isinstance(entry, Message):
                view = view.append(entry)
            elif entry.outcome == "expected":
                view = view.with_cleared(tuple(entry.reason.split()))
            elif entry.outcome == "applied":
                view = edits.apply(view, entry.kind, entry.edits)
        return view

    @property
    def rejected(self) -> int:
        count = 0
        for change in reversed([e for e in self.entries if isinstance(e, Transformation)]):
            if change.kind == "summary":
                if change.outcome == "applied":
                    break
                count += 1
        return count

    @property
    def messages(self) -> list[tuple[str, Any]]:
        """Kind and content of every message."""
        return [(e.kind, json.loads(e.content)) for e in self.entries if isinstance(e, Message)]

    async def load(self) -> LoadedConversation:
        view = self.view()
        calls = sum(isinstance(e, Message) and e.kind == "answer" for e in self.entries)
        return LoadedConversation(
            view,
            self.report,
            self.bound_to,
            self.rejected,
            calls=calls,
            called_at=self.called_at,
            edited_from=self.edited_from,
        )

    async def pins(self) -> frozenset[str | int]:
        return self.pinned

    async def record(
        self, transformation: Transformation, policy: Policy, summary_call: int | None
    ) -> Veto | None:
        reason = self.veto(transformation)
        if reason and transformation.outcome in ("applied", "expected"):
            return Veto(reason)
        self.entries.append(transformation)
        self.recorded.append((transformation, summary_call))
        return None

    async def store_results(self, content: str) -> Message:
        if self.fails is not None:
            raise self.fails
        return self.put("results", content)


@dataclass
class FakeCalls:
    log: FakeLog
    sendings: list[Sending] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    #: Length of the log when each call was opened.
    tips: list[int] = field(default_factory=list)
    endings: dict[int, Ending] = field(default_factory=dict)
    #: Raised instead of opening the call of that number.
    refuses: dict[int, Refused] = field(default_factory=dict)
    on_close: Callable[[Ending], Awaitable[object]] | None = None
    #: Raised when the call of that number asks to be followed by another one.
    ends: dict[int, Refused] = field(default_factory=dict)

    async def demand(self, sent: Sent) -> None:
        if sent.call in self.ends:
            raise self.ends[sent.call]

    async def open(self, sending: Sending) -> Sent:
        number = len(self.sendings) + 1
        if number in self.refuses:
            raise self.refuses.pop(number)
        text = join_body(sending.envelope.text, sending.messages)
        self.sendings.append(sending)
        self.bodies.append(text)
        self.tips.append(len(self.log.entries))
        return Sent(number, text, headers=sending.envelope.headers)

    async def close(self, sent: Sent, ending: Ending) -> Message | None:
        if self.on_close is not None:
            await self.on_close(ending)
        assert sent.call not in self.endings
        self.endings[sent.call] = ending
        return self.log.put("answer", wire.join(ending.blocks)) if ending.blocks else None


@dataclass
class FakeModel:
    """Plays one script per request, the summary model's from a list of their own."""

    replies: list[Script] = field(default_factory=list)
    summaries: list[Script] = field(default_factory=list)
    #: What the count endpoint says, None when it fails; the last one goes on.
    counts: list[int | None] = field(default_factory=lambda: [None])
    counted: list[str] = field(default_factory=list)
    closed: int = 0

    async def count(self, body: str, headers: Headers = NO_HEADERS) -> int | None:
        self.counted.append(body)
        await asyncio.sleep(0)
        return self.counts.pop(0) if len(self.counts) > 1 else self.counts[0]

    async def stream(
        self, body: str, headers: Headers = NO_HEADERS
    ) -> AsyncGenerator[Head | Piece, None]:
        wanted = self.summaries if json.loads(body)["model"] == SUMMARY else self.replies
        script = wanted.pop(0)
        try:
            await asyncio.sleep(0)
            for step in script:
                if isinstance(step, BaseException):
                    raise step
                if callable(step):
                    await step()
                    continue
                if step["type"] == "message_start":
                    yield Head("req_1", 200)
                yield Piece((step,))
        finally:
            self.closed += 1


@dataclass
class FakeTools:
    run_by_name: dict[str, Callable[[Any], Awaitable[ToolDone]]] = field(default_factory=dict)
    log: list[tuple[str, str]] = field(default_factory=list)
    ran: list[tuple[str, Any]] = field(default_factory=list)
    running: int = 0
    most: int = 0
    fails: dict[str, BaseException] = field(default_factory=dict)
    #: What is said of a call before it may run, by its id; and the questions that were put.
    verdicts: dict[str, ApprovalQuestion | ToolDone] = field(default_factory=dict)
    asked: list[ApprovalQuestion] = field(default_factory=list)
    #: Happens before the calls of an answer are checked.
    before: Callable[[], Awaitable[object]] | None = None

    async def check_calls(
        self, uses: Sequence[ToolUse]
    ) -> Mapping[str, ApprovalQuestion | ToolDone]:
        if self.before is not None:
            await self.before()
        return {use.id: self.verdicts[use.id] for use in uses if use.id in self.verdicts}

    async def ask(self, asks: Sequence[ApprovalQuestion]) -> None:
        self.asked += asks

    async def started(self, use: ToolUse) -> None:
        if "started" in self.fails:
            raise self.fails["started"]
        self.log.append(("started", use.id))

    async def run(self, use: ToolUse) -> ToolDone:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            self.ran.append((use.id, json.loads(use.input)))
            if use.name not in self.run_by_name:
                return ToolDone(wire.encode(f"There is no tool {use.name}."), "error")
            return await self.run_by_name[use.name](json.loads(use.input))
        finally:
            self.running -= 1

    async def finished(self, use: ToolUse, done: ToolDone) -> None:
        if "finished" in self.fails:
            raise self.fails["finished"]
        self.log.append((done.state, use.id))


@dataclass
class FakeDisplay:
    states: list[tuple[str, int, float]] = field(default_factory=list)
    told: list[Event] = field(default_factory=list)
    text: str = ""
    thinking: str = ""
    fails: bool = False
    #: The limits a minute that were waited for.
    waits: list[str] = field(default_factory=list)

    async def enter(
        self, state: str, *, attempt: int = 0, wait: float = 0.0, waits_for: str = ""
    ) -> None:
        self.states.append((state, attempt, wait))
        self.waits += [waits_for] if waits_for and wait else []

    async def publish(self, *events: Event) -> None:
        if self.fails:
            raise RuntimeError("the browser is on fire")
        self.told += events

    async def hold(self, *events: Event) -> None:
        self.told += events

    async def grow(self, text: str, thinking: str) -> None:
        self.text += text
        self.thinking += thinking


async def look(input: Any) -> ToolDone:
    """The plain tool: it gives its input back after a moment."""
    await asyncio.sleep(0)
    return ToolDone(wire.encode(f"seen {json.dumps(input)}"), "ok")


@dataclass
class World:
    """All fakes of one turn; `run` runs it."""

    job: Job = field(default_factory=job)
    prompt: str = "Hello"
    log: FakeLog = field(default_factory=FakeLog)
    model: Any = field(default_factory=FakeModel)
    tools: FakeTools = field(default_factory=lambda: FakeTools({"look": look}))
    display: FakeDisplay = field(default_factory=FakeDisplay)
    switch: Switch = field(default_factory=Switch)
    pauses: list[float] = field(default_factory=list)
    on_pause: Callable[[], Awaitable[object]] | None = None
    #: The clock, in seconds.
    now: float = 0.0

    def __post_init__(self) -> None:
        self.calls = FakeCalls(self.log)
        self.log.put("prompt", blocks(self.prompt))

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if self.on_pause is not None:
            await self.on_pause()

    @property
    def ports(self) -> Ports:
        return Ports(
            log=self.log,
            calls=self.calls,
            model=self.model,
            tools=self.tools,
            display=self.display,
            switch=self.switch,
            pause=self.pause,
            chance=lambda: 0.5,
            now=lambda: self.now,
            turn=1,
        )

    async def run(self, *replies: Script) -> Finish:
        if replies:
            self.model.replies[:] = replies
        return await Runner(self.job, self.ports, 1).run()

    async def resume(self, begun: TurnProgress, *replies: Script) -> Finish:
        """Go on with the turn as another worker, after this one died."""
        self.switch = Switch()
        self.model.replies[:] = replies
        return await Runner(self.job, self.ports, 1, begun).run()

    async def go_on(self, prompt: str, *replies: Script) -> Finish:
        """A later turn of the same conversation."""
        self.log.put("prompt", blocks(prompt))
        self.switch = Switch()
        return await self.run(*replies)

    def stop(self, reason: str = "user") -> None:
        """Ask for a stop as the shell does: from a callback of the loop."""
        asyncio.get_running_loop().call_soon(self.switch.request, reason)

    async def stop_and_wait(self) -> None:
        """A step at which the stop arrives while the turn waits."""
        self.stop()
        await asyncio.Event().wait()


async def forever() -> None:
    await asyncio.Event().wait()


async def cancelled(task: asyncio.Task[Any]) -> None:
    """End a task as a shutdown does."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
