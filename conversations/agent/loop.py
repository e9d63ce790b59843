"""The agent loop: prepare the context, ask the model, run its tools, again until it is done.

Pure: it knows ports, not Django, not the SDK, no clock. It decides what may be tried again and when
a tool may run; every fact is committed through a port before the next step relies on it. It never
starts a second attempt once text was shown, and never runs a tool whose call is not whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conversations.agent.answer import Answer
from conversations.agent.call import attempt
from conversations.agent.events import MeterMoved, RoundChanged, RoundOpened, TurnChanged
from conversations.agent.finish import (
    declined,
    failed,
    finished,
    left_out,
    stopped,
    used_up,
    wrong_calls,
)
from conversations.agent.job import Job, Loaded, call_ids
from conversations.agent.ports import Finish, ModelFailed, Ports, Refused, Sending, Sent
from conversations.agent.prepare import Preparing, compare, report_of
from conversations.agent.resume import Begun, OpenRound
from conversations.agent.stop import Stopped
from conversations.agent.tool_calls import STOPPED, TOO_MANY, ToolRuns
from conversations.context.errors import ContextError, RuleError
from conversations.context.pipeline import Prepared
from conversations.context.steps import api_clearing
from conversations.context.steps.protocol import REFUSED
from conversations.context.view import edits, rules
from conversations.context.view.view import View

#: How much longer an answer may be whose tool call was cut by the limit.
LONGER = 4


@dataclass(frozen=True, slots=True)
class Got:
    """A complete answer, and the conversation with it."""

    state: Loaded
    answer: Answer
    sent: Sent


class Runner:
    """One run of one turn."""

    def __init__(self, job: Job, ports: Ports, turn: int, begun: Begun | None = None) -> None:
        begun = begun or Begun()
        self.job, self.ports, self.turn, self.open = job, ports, turn, begun.open
        self.round, self.tool_calls, self.wrong = begun.rounds, begun.tool_calls, begun.wrong
        self.pauses, self.overflows = begun.pauses, begun.overflows
        #: The message this turn began with.
        self.first = begun.first
        #: Ids of this turn's tool calls, in view or not.
        self.ids = set(begun.ids)
        #: What the meter says that pages were told last: messages and changes of the view.
        self.metered = (0, 0)

    async def run(self) -> Finish:
        """Run to the end; everything that can go wrong is a Finish."""
        try:
            state = await self.ports.log.load()
            last = max((message.seq for message in state.view.messages[-1:]), default=0)
            self.first = self.first or last
            # Pages have the meter with the turn that begins, or goes on.
            self.metered = _size(state.view)
            return await self._loop(state)
        except Stopped as stop:
            return stopped(stop.reason)
        except (Refused, ModelFailed, ContextError) as error:
            return failed(error.code, str(error))

    async def _loop(self, state: Loaded) -> Finish:
        finish = self._is_over()
        if self.open is not None:
            state, finish = await self._use_tools(state, self.open)
        while finish is None:
            self.ports.switch.check()
            self.ports.switch.check_leaving()
            if self.round >= self.job.caps.rounds:
                return used_up("turn_rounds")
            self.round += 1
            got = await self._reply(state)
            state = got.state
            if got.answer.tool_uses:
                # Its tools may take long. Otherwise the next call tells the meter, or the end.
                moved = self._measure(state.view)
                await self.ports.tell(RoundChanged(self.turn, self.round), *moved)
                calls = OpenRound(got.sent.call, got.answer.tool_uses)
                state, finish = await self._use_tools(state, calls)
            elif self._goes_on(got):
                self.pauses += 1
                await self.ports.tell(RoundChanged(self.turn, self.round))
            elif got.answer.stop_reason == "refusal":
                await self._leave_out(state.view)
                return declined(got.answer.refusal)
            else:
                # The end of the turn shows all of it anew, its last round too.
                return finished(got.answer.stop_reason)
        return finish

    def _measure(self, view: View) -> tuple[MeterMoved, ...]:
        """Return what tells how full the context is, if that is not what was told before."""
        if self.metered == _size(view):
            return ()
        self.metered = _size(view)
        return (MeterMoved(),)

    async def _leave_out(self, view: View) -> None:
        """Record that the refused exchange is no part of the next request."""
        change = left_out(view, self.first)
        veto = await self.ports.log.record(change, self.job.policy, None)
        if veto is not None:
            kept = edits.unapplied(view, change.kind, change.trigger, "vetoed", veto.reason)
            await self.ports.log.record(kept, self.job.policy, None)

    def _goes_on(self, got: Got) -> bool:
        """Say whether an answer that paused is sent back for the rest of it."""
        if got.answer.stop_reason != "pause_turn" or self.pauses >= self.job.caps.pauses:
            return False
        try:
            rules.check(got.state.view)
        except RuleError:
            return False
        return True

    async def _reply(self, state: Loaded) -> Got:
        """Prepare and ask; what the API cannot take is reduced, a bounded number of times."""
        harder = 0
        overflow: tuple[ModelFailed, tuple[object, ...]] | None = None
        while True:
            prepared, state = await Preparing(self.job, self.ports, state).prepare(harder)
            # What could not be made smaller is not sent again.
            sent = prepared.view.edits, prepared.cleared
            if overflow is None or sent != overflow[1]:
                try:
                    return await self._ask_for_reply(prepared, state)
                except ModelFailed as error:
                    if error.code == "signature" and state.bound_to != REFUSED:
                        # Under no envelope of ours are the signatures good: all thinking goes.
                        state = replace(state, bound_to=REFUSED)
                        continue
                    if error.code != "overflow":
                        raise
                    overflow = error, sent
            if self.overflows >= self.job.caps.overflows:
                raise overflow[0]
            self.overflows += 1
            harder += 1

    async def _ask_for_reply(self, prepared: Prepared, state: Loaded) -> Got:
        """Open a call, listen, close it; try again while nothing was shown and it may help."""
        view = prepared.view
        left = self.job.window - prepared.gauge.seen
        envelope = self.job.envelope.fitting(left)
        envelope = api_clearing.asked(envelope, view, prepared.clearing)
        taken = self.ids | call_ids(view)
        tries, asked = 1, envelope.max_tokens
        if moved := self._measure(view):
            await self.ports.tell(*moved)
        while True:
            self.ports.switch.check()
            sending = Sending("reply", envelope, view.body, prepared.gauge.tokens, view, tries)
            await self.ports.stage.enter("running", attempt=tries)
            sent = await self.ports.calls.open(sending)
            state = replace(state, called_at=self.ports.now())
            await self.ports.tell(RoundOpened(self.turn, self.round))
            try:
                grow = self.ports.stage.grow
                answer, message = await attempt(self.ports, sent, grow=grow, taken=taken)
            except ModelFailed as error:
                await self._back_off(error, tries)
                tries += 1
                continue
            if answer.is_cut_call and not message and not sent.is_limited:
                # Nothing of it can be kept: it is asked once more, with more room.
                longest = min(LONGER * asked, self.job.max_output, left)
                if envelope.max_tokens == asked < longest:
                    envelope = envelope.limited(longest)
                    continue
            after = view.append(message) if message else view
            report = report_of(answer, after, envelope.overhead) or state.report
            compare(prepared, answer)
            known = replace(state, view=after, report=report, bound_to=envelope.binding)
            return Got(known, answer, sent)

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
        with self.ports.switch.pausing():
            await self.ports.pause(wait)

    async def _use_tools(self, state: Loaded, calls: OpenRound) -> tuple[Loaded, Finish | None]:
        """Answer the calls of an answer; those beyond the cap are told so.

        Where nobody could be told of their results, no tool runs: raises Refused.
        """
        self.ports.switch.check_leaving()
        allowed = self.job.caps.tool_calls - self.tool_calls
        refused, denied = await self._refusal(calls.call), TOO_MANY
        if refused is not None:
            allowed, denied = 0, STOPPED + refused.code
        self.tool_calls += len(calls.uses)
        self.ids.update(use.id for use in calls.uses)
        changed = RoundChanged(self.turn, self.round)
        runs = ToolRuns(self.ports, changed, self.job.caps.parallel_tools, allowed, denied)
        answered = await runs.answer(calls)
        if answered is None:
            return state, Finish("approval_wait")
        if refused is not None:
            raise refused
        message, is_wrong = answered
        self.wrong = self.wrong + 1 if is_wrong else 0
        return replace(state, view=state.view.append(message)), self._is_over()

    def _is_over(self) -> Finish | None:
        """Say how the turn ends when it has used up what its tools may do."""
        if self.tool_calls > self.job.caps.tool_calls:
            return used_up("turn_tools")
        return wrong_calls() if self.wrong >= self.job.caps.wrong_rounds else None

    async def _refusal(self, call: int) -> Refused | None:
        """Give why there can be no further call, if that is known already."""
        try:
            await self.ports.calls.demand(Sent(call, ""))
        except Refused as refused:
            return refused
        return None


def _size(view: View) -> tuple[int, int]:
    return view.length, view.edits
