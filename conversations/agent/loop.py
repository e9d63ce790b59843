"""The agent loop: prepare the context, call the model, run its tools, repeat until done.

It imports no Django, no SDK and no clock, only ports. It decides what may be retried and when a
tool may run; every fact is committed through a port before the next step relies on it. It never
starts a second attempt once text was shown, and never runs a tool whose call is incomplete.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from conversations.agent.answer import Answer
from conversations.agent.call import attempt_call
from conversations.agent.declined import build_declined_trim, forget_reports
from conversations.agent.events import MeterMoved, RoundChanged, RoundOpened, TurnChanged
from conversations.agent.finish import (
    build_refusal_trim,
    finish_answer,
    finish_at_limit,
    finish_failure,
    finish_refusal,
    finish_stop,
    finish_wrong_calls,
)
from conversations.agent.job import Job, LoadedConversation, list_call_ids
from conversations.agent.ports import (
    Finish,
    ModelFailed,
    Ports,
    Refused,
    SearchesLimited,
    Sending,
    Sent,
)
from conversations.agent.prepare import RequestPreparation, build_report, warn_of_mismatch
from conversations.agent.refused_requests import REFUSED_FOR_GOOD, RefusedRequests
from conversations.agent.resume import OpenRound, TurnProgress
from conversations.agent.stop import Stopped
from conversations.agent.tool_calls import STOPPED, TOO_MANY, ToolRuns
from conversations.context.errors import ContextError, RuleError
from conversations.context.pipeline import Prepared
from conversations.context.policy.gauge import is_edited
from conversations.context.steps import api_clearing
from conversations.context.steps.protocol import REFUSED
from conversations.context.view import edits, rules
from conversations.context.view.edits import Transformation
from conversations.context.view.envelope import Envelope
from conversations.context.view.server_calls import read_server_calls
from conversations.context.view.view import Message, View

#: Factor by which the output limit is raised after it cut a tool call.
LONGER_FACTOR = 4


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """A complete answer, and the conversation including it."""

    state: LoadedConversation
    answer: Answer
    sent: Sent


class Runner:
    """One run of one turn."""

    def __init__(
        self, job: Job, ports: Ports, turn: int, progress: TurnProgress | None = None
    ) -> None:
        progress = progress or TurnProgress()
        self.job, self.ports, self.turn, self.open = job, ports, turn, progress.open
        #: The job of the chosen model; after a refusal another one takes over.
        self.chosen = job
        self.round, self.tool_calls, self.wrong = (
            progress.rounds,
            progress.tool_calls,
            progress.wrong,
        )
        self.pauses, self.overflows = progress.pauses, progress.overflows
        self.refusals = RefusedRequests(job, ports, progress.refusals)
        #: Number of the message written before the model declined; see TurnProgress.
        self.declined = progress.declined
        #: Number of the first message of this turn.
        self.first = progress.first
        #: Ids of this turn's tool calls, in view or not.
        self.ids = set(progress.ids)
        #: Length and number of edits of the view when the meter was last published.
        self.metered = (0, 0)

    async def run(self) -> Finish:
        """Run to the end; everything that can go wrong becomes a Finish."""
        try:
            state = await self.ports.log.load()
            last = max((message.seq for message in state.view.messages[-1:]), default=0)
            self.first = self.first or last
            # Pages get the meter with the event that starts or resumes the turn.
            self.metered = _measure(state.view)
            if self.declined is not None and self.job.fallback is not None:
                state = await self._hand_over(self.job.fallback, state, self.declined) or state
            return await self._loop(state)
        except Stopped as stop:
            return finish_stop(stop.reason)
        except (Refused, ModelFailed, ContextError) as error:
            return finish_failure(error.code, str(error))

    async def _loop(self, state: LoadedConversation) -> Finish:
        finish = self._is_over()
        if self.open is not None:
            state, finish = await self._use_tools(state, self.open)
        while finish is None:
            self.ports.switch.check()
            self.ports.switch.check_leaving()
            if self.round >= self.job.caps.rounds:
                return finish_at_limit("turn_rounds")
            self.round += 1
            waited = bool(read_server_calls(state.view).open)
            received = await self._reply(state)
            state = received.state
            if waited:
                # The tool results that this round waited for are shown with its calls.
                await self.ports.publish(RoundChanged(self.turn, self.round - 1))
            if received.answer.tool_uses:
                # Most tools are quick: one frame shows their calls, their ends and the next round.
                moved = self._meter_events(state.view)
                await self.ports.display.hold(RoundChanged(self.turn, self.round), *moved)
                calls = OpenRound(received.sent.call, received.answer.tool_uses)
                state, finish = await self._use_tools(state, calls)
            elif self._goes_on(received):
                self.pauses += 1
                await self.ports.publish(RoundChanged(self.turn, self.round))
            elif received.answer.stop_reason == "refusal":
                state, finish = await self._answer_refusal(received)
            else:
                # The event of the turn's end renders its last round, too.
                return finish_answer(received.answer.stop_reason)
        return finish

    def _meter_events(self, view: View) -> tuple[MeterMoved, ...]:
        """Return the meter's event if the context has changed since it was last published."""
        if self.metered == _measure(view):
            return ()
        self.metered = _measure(view)
        return (MeterMoved(),)

    async def _answer_refusal(
        self, received: ReceivedAnswer
    ) -> tuple[LoadedConversation, Finish | None]:
        """Continue once with the fallback model; else remove the exchange and end the turn."""
        state, fallback = received.state, self.job.fallback
        said = state.view.messages[-1].seq if received.answer.blocks else 0
        if fallback is not None:
            # A round counts only if its answer is stored.
            self.round -= not said
            if said:
                await self.ports.publish(RoundChanged(self.turn, self.round))
            if (handed := await self._hand_over(fallback, state, said)) is not None:
                return handed, None
        policy = state.add_decisions(self.job.policy)
        await self._leave_out(build_refusal_trim(state.view, self.first, policy), state.view)
        return state, finish_refusal(received.answer.refusal)

    async def _hand_over(
        self, fallback: Job, state: LoadedConversation, said: int
    ) -> LoadedConversation | None:
        """Continue with the fallback model, without the text written before the refusal.

        Returns None when the removal of that text was vetoed.
        """
        if said and state.view.messages[-1].seq == said:
            change = build_declined_trim(state.view, said, self.job.model)
            if not await self._leave_out(change, state.view):
                return None
            state = replace(state, view=change.view_after)
        self.job = fallback
        self.refusals = RefusedRequests(fallback, self.ports, self.refusals.count)
        return forget_reports(state)

    async def _leave_out(self, change: Transformation, view: View) -> bool:
        """Record a removal, or its veto; return whether it was applied."""
        veto = await self.ports.log.record(change, self.job.policy, None)
        if veto is not None:
            kept = edits.build_unapplied(view, change.kind, change.trigger, "vetoed", veto.reason)
            await self.ports.log.record(kept, self.job.policy, None)
        return veto is None

    def _goes_on(self, received: ReceivedAnswer) -> bool:
        """Return whether a paused answer is sent back so that the API continues it."""
        if received.answer.stop_reason != "pause_turn" or self.pauses >= self.job.caps.pauses:
            return False
        try:
            rules.check_rules(received.state.view)
        except RuleError:
            return False
        return True

    async def _reply(self, state: LoadedConversation) -> ReceivedAnswer:
        """Prepare and call; after an overflow reduce harder, a bounded number of times."""
        harder = 0
        overflow: tuple[ModelFailed, tuple[object, ...]] | None = None
        while True:
            prepared, state = await RequestPreparation(self.job, self.ports, state).prepare(harder)
            # A request that could not be made smaller is not sent a second time.
            sent = prepared.view.edits, prepared.cleared
            if overflow is None or sent != overflow[1]:
                try:
                    return await self._ask_for_reply(prepared, state)
                except SearchesLimited as limited:
                    self._limit_searches(limited.searches)
                    continue
                except ModelFailed as error:
                    if error.code == "signature" and state.bound_to != REFUSED:
                        # No envelope makes the refused signatures valid: drop all thinking.
                        state = replace(state, bound_to=REFUSED)
                        continue
                    if error.code in REFUSED_FOR_GOOD:
                        state = await self.refusals.repair(state, error, self.first)
                        continue
                    if error.code != "overflow":
                        raise
                    overflow = error, sent
            if self.overflows >= self.job.caps.overflows:
                raise overflow[0]
            self.overflows += 1
            harder += 1

    def _limit_searches(self, most: int) -> None:
        """Offer fewer searches for the rest of the turn."""
        is_chosen = self.job is self.chosen
        self.job = self.refusals.job = self.job.limit_searches(most)
        if is_chosen:
            self.chosen = self.job

    async def _ask_for_reply(self, prepared: Prepared, state: LoadedConversation) -> ReceivedAnswer:
        """Open a call, read it, close it; retry while nothing was shown and a retry may help."""
        view = prepared.view
        left = self.job.window - prepared.gauge.seen
        envelope = self.job.envelope.fit_window(left).with_lifetime(prepared.lifetime)
        envelope = api_clearing.build_reply_envelope(envelope, view, prepared.clearing)
        taken, waiting = self.ids | list_call_ids(view), read_server_calls(view).open.keys()
        tries, first_limit = 1, envelope.max_tokens
        await self.ports.display.hold(*self._meter_events(view))
        while True:
            self.ports.switch.check()
            body = view.join(prepared.lifetime)
            opened = RoundOpened(self.turn, self.round, self.job is self.chosen)
            sending = Sending("reply", envelope, body, prepared.gauge.seen, view, tries, opened)
            await self.ports.display.enter("running", attempt=tries)
            sent = await self.ports.open(sending)
            state = _note_call(state, self.ports.now(), prepared)
            await self.ports.publish(opened)
            try:
                answer, message = await attempt_call(
                    self.ports,
                    sent,
                    grow=self.ports.display.grow,
                    answer=Answer(taken, waiting),
                    find_end=partial(_find_end, bool(waiting)),
                )
            except ModelFailed as error:
                await self._back_off(error, tries)
                tries += 1
                continue
            if answer.is_cut_call and not message and not sent.is_limited:
                # A cut tool call cannot be kept: repeat the request with a higher limit.
                longest = min(LONGER_FACTOR * first_limit, self.job.max_output, left)
                if envelope.max_tokens == first_limit < longest:
                    envelope = envelope.with_limit(longest)
                    continue
            warn_of_mismatch(prepared, answer)
            known = replace(state, view=view, bound_to=envelope.binding)
            return ReceivedAnswer(_add_answer(known, answer, message, envelope), answer, sent)

    async def _back_off(self, error: ModelFailed, tries: int) -> None:
        """Wait before the next attempt, or raise when there must be none."""
        caps = self.job.caps
        requested = error.retry_after or 0.0
        if not error.may_retry or tries >= caps.attempts or requested > caps.backoff_seconds:
            raise error
        own = min(8.0, 0.5 * 2**tries) * (0.75 + self.ports.chance() / 2)
        wait = max(requested, min(own, caps.backoff_seconds))
        await self.ports.display.enter("backoff", attempt=tries + 1, wait=wait)
        await self.ports.publish(TurnChanged(self.turn))
        with self.ports.switch.pausing():
            await self.ports.pause(wait)

    async def _use_tools(
        self, state: LoadedConversation, calls: OpenRound
    ) -> tuple[LoadedConversation, Finish | None]:
        """Answer the tool calls of an answer; those beyond the cap get an error result.

        When no further call could use the results, no tool runs: raises Refused.
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
        """Return how the turn ends once it has reached a tool limit; None if it may continue."""
        if self.tool_calls > self.job.caps.tool_calls:
            return finish_at_limit("turn_tools")
        return finish_wrong_calls() if self.wrong >= self.job.caps.wrong_rounds else None

    async def _refusal(self, call: int) -> Refused | None:
        """Return why no further call is possible, if that is already known."""
        try:
            await self.ports.calls.demand(Sent(call, ""))
        except Refused as refused:
            return refused
        return None


def _note_call(state: LoadedConversation, now: float, sent: Prepared) -> LoadedConversation:
    """Return the conversation after a call, with what the API keeps of it."""
    cached = state.cached.after_call(
        now - state.called_at,
        sent.lifetime,
        sent.gauge.tokens,
        is_changed=is_edited(sent.view, state.report),
    )
    return replace(state, called_at=now, cached=cached, edited_from=None)


def _find_end(waited: bool, answer: Answer) -> Finish | None:
    """Return how the turn ends with a complete answer, if the answer alone decides that.

    `waited`: its round is shown together with the one that it was waited in.
    """
    goes_on = answer.tool_uses or answer.is_cut_call or waited
    if goes_on or answer.stop_reason in ("pause_turn", "refusal"):
        return None
    return finish_answer(answer.stop_reason)


def _measure(view: View) -> tuple[int, int]:
    return view.length, view.edits


def _add_answer(
    state: LoadedConversation, answer: Answer, message: Message | None, envelope: Envelope
) -> LoadedConversation:
    """Return the conversation with an answer and the usage that the API reported for it."""
    view = state.view.append(message) if message else state.view
    report = build_report(answer, view, envelope.overhead) or state.report
    return replace(state, view=view, report=report, calls=state.calls + (message is not None))
