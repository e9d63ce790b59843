"""The agent loop: prepare the context, ask the model, run its tools, again until it is done.

Pure: it knows ports, not Django, not the SDK, no clock. It decides what may be tried again and when
a tool may run; every fact is committed through a port before the next step relies on it. It never
starts a second attempt once text was shown, and never runs a tool whose call is not whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conversations.answer import Answer, ToolUse
from conversations.attempt import attempt
from conversations.context import pipeline, rules, wire
from conversations.context.errors import ContextError, RuleError
from conversations.context.estimate import text_tokens
from conversations.context.gauge import Report
from conversations.context.pipeline import Prepared, Situation, SummaryReply, SummaryWanted, Veto
from conversations.context.view import Message, View
from conversations.endings import failed, finished, stopped
from conversations.events import MeterMoved, RoundChanged, RoundOpened, TurnChanged
from conversations.ports import (
    Finish,
    Job,
    Loaded,
    ModelFailed,
    Ports,
    Refused,
    Sending,
)
from conversations.switch import Stopped
from conversations.toolruns import ToolRuns

#: What thinking is bound to once the API has refused its signatures.
REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Got:
    """An answer that is stored: the conversation with it, and what it wants."""

    state: Loaded
    stop_reason: str
    tools: tuple[ToolUse, ...]


class Runner:
    """One run of one turn."""

    def __init__(self, job: Job, ports: Ports, turn: int) -> None:
        self.job, self.ports, self.turn = job, ports, turn
        self.round = self.tool_calls = self.pauses = self.overflows = 0
        #: Ids of this turn's tool calls, in view or not.
        self.ids: set[str] = set()

    async def run(self) -> Finish:
        """Run to the end; everything that can go wrong is a Finish."""
        try:
            return await self._loop(await self.ports.log.load())
        except Stopped as stop:
            return stopped(stop.reason)
        except (Refused, ModelFailed, ContextError) as error:
            return failed(error.code, str(error))

    async def _loop(self, state: Loaded) -> Finish:
        while True:
            self.ports.switch.check()
            if self.round >= self.job.caps.rounds:
                return Finish("done", "loop_limit")
            self.round += 1
            got = await self._reply(state)
            state = got.state
            if got.tools:
                state = replace(state, view=await self._use_tools(got))
                if self.tool_calls > self.job.caps.tool_calls:
                    return Finish("done", "loop_limit")
            elif self._goes_on(got):
                self.pauses += 1
            else:
                return finished(got.stop_reason)

    def _goes_on(self, got: Got) -> bool:
        """Say whether an answer that paused is sent back for the rest of it."""
        if got.stop_reason != "pause_turn" or self.pauses >= self.job.caps.pauses:
            return False
        try:
            rules.check(got.state.view)
        except RuleError:
            return False
        return True

    async def _reply(self, state: Loaded) -> Got:
        """Prepare and ask; what the API cannot take is reduced, a bounded number of times."""
        harder = 0
        while True:
            prepared, state = await self._prepare(state, harder)
            try:
                return await self._ask_for_reply(prepared, state)
            except ModelFailed as error:
                if error.code == "signature" and state.bound_to != REFUSED:
                    # Under no envelope of ours are the signatures good: all thinking goes.
                    state = replace(state, bound_to=REFUSED)
                elif error.code == "overflow" and self.overflows < self.job.caps.overflows:
                    self.overflows += 1
                    harder += 1
                else:
                    raise

    async def _prepare(self, state: Loaded, harder: int) -> tuple[Prepared, Loaded]:
        """Drive the pipeline: record what it proposes, fetch the summaries it wants."""
        situation = Situation(
            model=self.job.model,
            window=self.job.window,
            overhead=self.job.envelope(state.view.reduced).overhead,
            report=state.report,
            bound_to=state.bound_to,
            binding=lambda recall: self.job.envelope(recall).binding,
            rejected=state.rejected,
        )
        steps = pipeline.prepare(state.view, situation, self.job.policy, harder=harder)
        summary_call: int | None = None
        reply: SummaryReply | Veto | None = None
        rejected = state.rejected
        while True:
            self.ports.switch.check()
            try:
                wish = steps.send(reply)
            except StopIteration as stop:
                prepared: Prepared = stop.value
                return prepared, replace(state, view=prepared.view, rejected=rejected)
            if isinstance(wish, SummaryWanted):
                reply, summary_call = await self._summarise(wish)
                continue
            if wish.kind != "summary":
                reply = await self.ports.log.record(wish, self.job.policy, None)
                continue
            reply = await self.ports.log.record(wish, self.job.policy, summary_call)
            if reply is None:
                # As the log counts them: what is recorded last decides.
                rejected = rejected + 1 if wish.outcome == "rejected" else 0

    async def _summarise(self, wish: SummaryWanted) -> tuple[SummaryReply | None, int | None]:
        """Ask the model for a summary; any failure is None and the deterministic steps go on."""
        messages = wire.encode([{"role": "user", "content": [{"type": "text", "text": wish.text}]}])
        envelope = self.job.summary_envelope(wish.system, wish.max_tokens)
        estimate = envelope.overhead + text_tokens(wish.text)
        sending = Sending("summary", envelope, messages, estimate, None, 1)
        try:
            sent = await self.ports.calls.open(sending)
        except Refused:
            return None, None
        try:
            answer, _ = await attempt(self.ports, sent, shows=False)
        except ModelFailed:
            return None, sent.call
        return SummaryReply(answer.text, answer.stop_reason), sent.call

    async def _ask_for_reply(self, prepared: Prepared, state: Loaded) -> Got:
        """Open a call, listen, close it; try again while nothing was shown and it may help."""
        view = prepared.view
        envelope = self.job.envelope(prepared.recall)
        in_view: set[str] = view.learn("call ids", _no_ids, _read_ids)
        taken = self.ids | in_view
        tries = 1
        await self.ports.tell(MeterMoved())
        while True:
            self.ports.switch.check()
            sending = Sending("reply", envelope, view.body, prepared.gauge.tokens, view, tries)
            await self.ports.stage.enter("running", attempt=tries)
            sent = await self.ports.calls.open(sending)
            await self.ports.tell(RoundOpened(self.turn, self.round))
            try:
                answer, message = await attempt(self.ports, sent, shows=True, taken=taken)
            except ModelFailed as error:
                await self._back_off(error, tries)
                tries += 1
                continue
            after = view.append(message) if message else view
            report = _report(answer, after, envelope.overhead) or state.report
            await self.ports.tell(RoundChanged(self.turn, self.round))
            await self.ports.tell(MeterMoved())
            known = replace(state, view=after, report=report, bound_to=envelope.binding)
            return Got(known, answer.stop_reason, answer.tool_uses)

    async def _back_off(self, error: ModelFailed, tries: int) -> None:
        """Wait before another attempt, or raise when there must be none."""
        caps = self.job.caps
        asked = error.retry_after or 0.0
        if not error.may_retry or tries >= caps.attempts or asked > caps.backoff_seconds:
            raise error
        own = min(8.0, 0.5 * 2**tries) * (0.75 + self.ports.chance() / 2)
        wait = max(asked, min(own, caps.backoff_seconds))
        await self.ports.stage.enter("backoff", attempt=tries + 1, wait=wait)
        await self.ports.tell(TurnChanged(self.turn))
        with self.ports.switch.interruptible():
            await self.ports.pause(wait)

    async def _use_tools(self, got: Got) -> View:
        """Answer the calls of an answer; those beyond the cap are told so."""
        allowed = self.job.caps.tool_calls - self.tool_calls
        self.tool_calls += len(got.tools)
        self.ids.update(use.id for use in got.tools)
        changed = RoundChanged(self.turn, self.round)
        runs = ToolRuns(self.ports, changed, self.job.caps.parallel_tools, allowed)
        return got.state.view.append(await runs.answer(got.tools))


def _no_ids() -> set[str]:
    return set()


def _read_ids(ids: set[str], message: Message) -> None:
    ids.update(call.id for call in message.shape.calls)
    ids.update(message.shape.server_calls)


def _report(answer: Answer, view: View, overhead: int) -> Report | None:
    """Anchor the gauge on what this answer reported; None when it reported nothing."""
    usage = answer.usage
    if usage is None or not usage.context:
        return None
    return Report(usage.context + usage.output, view.tokens, overhead, view.edits)
