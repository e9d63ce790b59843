"""Replay a recorded conversation through the engine, one call at a time.

Before each recorded answer the engine prepares as in real use; its proposals are applied, its
requests are answered, and the simulated bill of the call becomes its next report. A request that is
too long for the simulated API is prepared again with a higher `harder`, as the agent loop does. A
turn that ends because the context is full is skipped to the next prompt: the conversation stays
usable.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from conversations.agent.usage import Usage
from conversations.context import pipeline
from conversations.context.errors import RuleError, WindowError
from conversations.context.pipeline import (
    CompactionReply,
    CompactionWanted,
    CountWanted,
    Prepared,
    Reply,
    Situation,
    SummaryWanted,
)
from conversations.context.policy.cache_lifetime import CachedPrefix
from conversations.context.policy.gauge import Report, is_edited
from conversations.context.steps import api_clearing
from conversations.context.steps.kinds import ASKS_MODEL
from conversations.context.steps.summary_call import THOUGHT
from conversations.context.view import cache_breakpoints, wire
from conversations.context.view.edits import Transformation
from conversations.context.view.envelope import Envelope
from conversations.context.view.view import Message, View
from conversations.lab.cache import PromptCache
from conversations.lab.cache_blocks import BlockReader
from conversations.lab.call_times import schedule_calls
from conversations.lab.legality import LegalityCheck
from conversations.lab.records import Record, list_calls
from conversations.lab.replay_log import count_refused, fold_change
from conversations.lab.replay_setup import World
from conversations.lab.server_side_edits import ContextEditing, simulate_compaction

OVERFLOWS = 3
#: The number of last pauses that the engine gets, as from the log.
_PAUSES = 49


@dataclass(frozen=True, slots=True)
class Step:
    """One call: what was decided before it, what was sent, and what it would have cost.

    `usage` is None if nothing was sent: the context was full, or a rule was broken. Times are
    nanoseconds of CPU.
    """

    at: int
    prepared: Prepared | None
    #: The view as the model sees it, after the API's own edits.
    seen: View
    envelope: Envelope
    messages: str
    usage: Usage | None
    changes: tuple[Transformation, ...]
    summaries: tuple[Usage, ...]
    #: Those that another model wrote (`World.writer`); `summaries` has the others.
    apart: tuple[Usage, ...]
    violations: tuple[str, ...]
    overruns: int
    keeps_prefix: bool
    decide_ns: int
    join_ns: int
    #: Indexes of messages that the log does not have, because their turn had ended.
    unlogged: frozenset[int] = frozenset()


@dataclass
class _Work:
    """The results of one call so far."""

    changes: list[Transformation] = field(default_factory=list)
    summaries: list[Usage] = field(default_factory=list)
    apart: list[Usage] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    overruns: int = 0
    decide_ns: int = 0
    join_ns: int = 0


class Replayer:
    """One replay of one record."""

    def __init__(self, record: Record, world: World) -> None:
        self._record, self._world = record, world
        # Copied without cached parses, so that no replay profits from another.
        self._messages = tuple(map(replace, record.messages))
        self._envelope = world.envelope(record)
        self._liner = BlockReader(world.tokenizer)
        self._cache = PromptCache(world.minimum)
        self._legality = LegalityCheck()
        self._editing = ContextEditing()
        self._view = View()
        self._report: Report | None = None
        self._bound_to = ""
        self._rejected = self._rejected_at = self._calls = 0
        #: For each entry of the log: the outcome of a summary, "" for everything else.
        self._entries: list[str] = []
        self._sent = ("", "")
        self._rates = world.rates
        self._now = 0.0
        #: When the last call was made.
        self._called: float | None = None
        #: What the API keeps of the last request; seconds between the turns.
        self._cached = CachedPrefix()
        self._pauses: list[int] = []
        self._unlogged: frozenset[int] = frozenset()

    def steps(self) -> Iterator[Step]:
        """Yield the calls in order, one for each answer of the record that was reached."""
        times = schedule_calls(self._record)
        called = set(list_calls(self._record.messages))
        is_over = False
        for at, message in enumerate(self._messages):
            if message.kind == "prompt":
                is_over = False
                self._rejected = count_refused(self._entries[-self._world.remembered :])
            if is_over:
                self._unlogged |= {at}
                continue
            if at in called:
                self._now = times[at]
                if self._called is not None and self._messages[at - 1].kind == "prompt":
                    self._pauses.append(int(self._now - self._called))
                step = self._call(at, message)
                yield step
                is_over = step.usage is None
            if is_over:
                self._unlogged |= {at}
            else:
                self._view = self._view.append(message)
                self._entries.append("")

    def _call(self, at: int, answer: Message) -> Step:
        work = _Work()
        for harder in range(OVERFLOWS + 1):
            try:
                prepared = self._prepare(work, harder)
            except WindowError:
                break
            except RuleError as error:
                work.violations.append(f"messages before {at}: {error}")
                break
            seen = self._editing.clear_view(prepared.view, prepared.cleared)
            line = self._liner.line(self._envelope, seen)
            if line.tokens > self._world.window:
                work.overruns += 1
                continue
            return self._sent_step(at, answer, prepared, seen, work)
        return _step(at, work, self._envelope)

    def _prepare(self, work: _Work, harder: int) -> Prepared:
        """Drive the engine once; only its own time is measured."""
        steps = pipeline.prepare(self._view, self._situation(), self._world.policy, harder=harder)
        reply: Reply = None
        folded = self._view
        try:
            while True:
                started = time.thread_time_ns()
                try:
                    wish = steps.send(reply)
                finally:
                    work.decide_ns += time.thread_time_ns() - started
                if isinstance(wish, SummaryWanted):
                    reply = self._world.summarizer(wish)
                    if reply is not None:
                        is_apart = self._world.writer is not None and wish.continued is None
                        bills = work.apart if is_apart else work.summaries
                        bills.append(self._summary_bill(wish, reply.text))
                elif isinstance(wish, CompactionWanted):
                    reply = self._compaction(wish, work)
                elif isinstance(wish, CountWanted):
                    reply = self._liner.line(self._envelope, wish.view).tokens
                else:
                    reply = None
                    work.changes.append(wish)
                    self._count(wish)
                    folded = fold_change(folded, wish)
        except StopIteration as stop:
            prepared: Prepared = stop.value
        if folded != prepared.view:
            work.violations.append("what is recorded does not give what is sent")
        self._view = prepared.view
        return prepared

    def _situation(self) -> Situation:
        return Situation(
            model=self._world.model,
            window=self._world.window,
            overhead=self._envelope.overhead,
            report=self._report,
            bound_to=self._bound_to,
            binding=self._envelope.binding,
            rejected=self._rejected,
            rates=self._rates,
            summary_rates=self._world.writer_rates,
            cache_age=None if self._called is None else int(self._now - self._called),
            cache_lifetime=self._cached.seconds,
            hour_tokens=self._cached.tokens,
            pauses=tuple(self._pauses[-_PAUSES:]),
            calls=self._calls,
            rejected_at=self._rejected_at,
            clears=self._world.clears,
            compacts=self._world.compacts,
        )

    def _count(self, change: Transformation) -> None:
        asks_model = change.kind in ASKS_MODEL
        self._entries.append(change.outcome if asks_model else "")
        if asks_model:
            is_rejected = change.outcome == "rejected"
            self._rejected = self._rejected + 1 if is_rejected else 0
            self._rejected_at = change.tokens_before if is_rejected else 0

    def _summary_bill(self, wanted: SummaryWanted, summary: str) -> Usage:
        """Bill a summary call: its own envelope and one message, or a reply's and the last request.

        In the latter the model thinks as it does before a reply.
        """
        block = {"type": "text", "text": summary}
        output = self._world.tokenizer.block(block) if summary else 0
        if wanted.continued is not None:
            line = self._liner.line(self._envelope, wanted.continued)
            return self._cache.bill(line, output + THOUGHT, self._now)
        envelope = self._world.summary_envelope(wanted.system, wanted.max_tokens)
        text = wire.encode([{"type": "text", "text": wanted.text}])
        view = View().append(Message.parse(1, "prompt", text))
        return self._cache.bill(self._liner.line(envelope, view), output, self._now)

    def _compaction(self, wanted: CompactionWanted, work: _Work) -> CompactionReply | None:
        """Bill an on-demand compaction, which reads the cached prefix of the replies."""
        reply = simulate_compaction(wanted, self._world.summarizer)
        envelope = api_clearing.build_compaction_envelope(self._envelope)
        line = self._liner.line(envelope, wanted.view)
        output = self._world.tokenizer.block(wire.decode(reply.block)) if reply else 0
        work.summaries.append(self._cache.bill(line, output, self._now))
        return reply

    def _sent_step(
        self, at: int, answer: Message, prepared: Prepared, seen: View, work: _Work
    ) -> Step:
        left = self._world.window - prepared.gauge.seen
        envelope = self._envelope.fit_window(left).with_lifetime(prepared.lifetime)
        envelope = api_clearing.build_reply_envelope(envelope, prepared.view, prepared.clearing)
        started = time.thread_time_ns()
        messages = prepared.view.join(prepared.lifetime)
        work.join_ns = time.thread_time_ns() - started
        found = self._legality.find_violations(prepared.view.messages)
        work.violations += [f"messages before {at}: {what}" for what in found]
        uncleared = self._liner.line(envelope, prepared.view).tokens
        line = self._liner.line(envelope, seen)
        usage = self._cache.bill(line, self._liner.answer_tokens(answer), self._now)
        before, body = self._sent
        # Breakpoints may move without invalidating the cache.
        plain = prepared.view.body if seen is prepared.view else seen.body
        plain = plain.replace(cache_breakpoints.MARKS["5m"], "")
        keeps = not body or (before == envelope.binding and plain.startswith(body[:-1]))
        self._cached = self._cached.after_call(
            self._now - (self._called or 0.0), prepared.lifetime, prepared.gauge.tokens,
            is_changed=is_edited(prepared.view, self._report),
        )  # fmt: skip
        self._sent, self._called = (envelope.binding, plain), self._now
        self._calls += 1
        self._bound_to = envelope.binding
        tokens, view = uncleared + usage.output, prepared.view
        known = view.tokens + answer.tokens
        self._report = Report(tokens, known, envelope.overhead, view.edits)
        return replace(
            _step(at, work, envelope),
            prepared=prepared, seen=seen, messages=messages, usage=usage, keeps_prefix=keeps,
            unlogged=self._unlogged,
        )  # fmt: skip


def _step(at: int, work: _Work, envelope: Envelope) -> Step:
    return Step(
        at, None, View(), envelope, "", None, tuple(work.changes), tuple(work.summaries),
        tuple(work.apart), tuple(work.violations), work.overruns, True, work.decide_ns,
        work.join_ns,
    )  # fmt: skip
