"""Prepare a request: drive the pipeline, record its proposals, answer its requests.

Pure, like the loop; every answer comes through a port.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import assert_never

from conversations.agent.answer import Answer
from conversations.agent.call import request_compaction, request_count, request_summary
from conversations.agent.job import Job, LoadedConversation
from conversations.agent.ports import Ports, ReplyAhead, logger
from conversations.context import pipeline
from conversations.context.pipeline import (
    CompactionWanted,
    CountWanted,
    EngineRequest,
    Preparation,
    Prepared,
    Reply,
    Situation,
    SummaryWanted,
)
from conversations.context.policy.gauge import Report, anchor_report, measure_context
from conversations.context.steps import api_clearing
from conversations.context.steps.kinds import ASKS_MODEL
from conversations.context.view.edits import Transformation
from conversations.context.view.view import View

#: Bytes of a conversation whose preparation takes less time than a switch to a thread.
_AT_ONCE = 20_000


class RequestPreparation:
    """One preparation; `call` is the last call that requested a text for it."""

    def __init__(self, job: Job, ports: Ports, state: LoadedConversation) -> None:
        self.job, self.ports, self.state = job, ports, state
        self.call: int | None = None
        self.rejected, self.rejected_at = state.rejected, state.rejected_at

    async def prepare(self, harder: int) -> tuple[Prepared, LoadedConversation]:
        """Return what to send, and the conversation after the changes; raises ContextError."""
        state = self.state
        situation = self._situation(await self.ports.log.pins())
        steps = pipeline.prepare(state.view, situation, self.job.policy, harder=harder)
        reply: Reply = None
        while True:
            self.ports.switch.check()
            if state.view.size > _AT_ONCE:
                # Shortening a huge result takes long and would block every other turn.
                request = await asyncio.to_thread(_advance, steps, reply)
            else:
                request = _advance(steps, reply)
            if isinstance(request, Prepared):
                # A compaction block that is still in view was made by this model.
                maker = self.job.model if api_clearing.has_compaction_block(request.view) else ""
                return request, replace(
                    state,
                    view=request.view,
                    rejected=self.rejected,
                    rejected_at=self.rejected_at,
                    compacted_by=maker,
                )
            reply = await self._answer(request)

    async def _answer(self, request: EngineRequest) -> Reply:
        match request:
            case SummaryWanted():
                text, self.call = await request_summary(
                    self.ports, self.job, request, self._ahead()
                )
                return text
            case CompactionWanted():
                block, self.call = await request_compaction(
                    self.ports, self.job.envelope, request, self._ahead()
                )
                return block
            case CountWanted():
                return await request_count(self.ports, self.job, request.view)
            case Transformation():
                return await self._record(request)
            case _:
                assert_never(request)

    def _ahead(self) -> ReplyAhead:
        """Return the reply as it would be sent without the summary, which makes it no larger."""
        job, state = self.job, self.state
        gauge = measure_context(state.view, job.envelope.overhead, state.report, job.window)
        return ReplyAhead(job.model, gauge.tokens, job.envelope.searches)

    async def _record(self, change: Transformation) -> Reply:
        asks_model = change.kind in ASKS_MODEL
        call = self.call if asks_model else None
        veto = await self.ports.log.record(change, self.job.policy, call)
        if asks_model and veto is None:
            # Counted as in the log: rejections and vetoes since the last applied summary.
            is_applied = change.outcome == "applied"
            self.rejected = 0 if is_applied else self.rejected + 1
            self.rejected_at = 0 if is_applied else change.tokens_before
        return veto

    def _situation(self, pins: frozenset[str | int]) -> Situation:
        job, state = self.job, self.state
        return Situation(
            model=job.model,
            window=job.window,
            overhead=job.envelope.overhead,
            report=state.report,
            bound_to=state.bound_to,
            binding=job.envelope.binding,
            rejected=state.rejected,
            rates=job.rates,
            summary_rates=job.summary_rates,
            cache_age=max(0, int(self.ports.now() - state.called_at)),
            cache_lifetime=state.cached.seconds,
            hour_tokens=state.cached.tokens,
            edited_from=state.edited_from,
            pauses=state.pauses,
            calls=state.calls,
            continuation=job.continuation,
            rejected_at=state.rejected_at,
            pins=pins,
            decisions=state.decisions,
            clears=job.clears,
            compacts=job.compacts,
            compacted_by=state.compacted_by,
        )


def _advance(steps: Preparation, reply: Reply) -> EngineRequest | Prepared:
    """Advance to the next request or the result: StopIteration must not leave a thread."""
    try:
        return steps.send(reply)
    except StopIteration as stop:
        prepared: Prepared = stop.value
        return prepared


def build_report(answer: Answer, view: View, overhead: int) -> Report | None:
    """Build the gauge's report from this answer's usage; None when it reported none."""
    usage = answer.usage
    if usage is None or not usage.context:
        return None
    report = Report(usage.uncleared + usage.output, view.tokens, overhead, view.edits)
    return anchor_report(report, view.messages[-1], usage.loop)


def warn_of_mismatch(prepared: Prepared, answer: Answer) -> None:
    """Log a warning when the API cleared other results than predicted and recorded."""
    cleared = answer.usage.cleared_uses if answer.usage else 0
    if cleared != len(prepared.cleared):
        logger.warning(
            "the API cleared %s tool results, expected were %s", cleared, len(prepared.cleared)
        )
