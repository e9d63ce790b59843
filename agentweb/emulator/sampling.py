"""The sampling iterations of one answer: summaries before it and within it, and fallback models."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentweb.emulator import compaction, json_codec
from agentweb.emulator.answer import Answer, Piece, Terms, compose
from agentweb.emulator.billed_answer import BilledAnswer, Iteration
from agentweb.emulator.cache import Plan
from agentweb.emulator.call import Call
from agentweb.emulator.faults.answer_faults import change_reply
from agentweb.emulator.faults.fault import Fault
from agentweb.emulator.model_catalogue import find_model
from agentweb.emulator.prepare_prompt import Prepared, plan_cache
from agentweb.emulator.prompt_units import Unit
from agentweb.emulator.scenes.scene import Raw, Reply, say
from agentweb.emulator.scenes.server_runs import run_open_calls
from agentweb.emulator.scenes.view import Request
from agentweb.emulator.server_loop import LoopTerms, run_loop
from agentweb.emulator.state import Emulator
from agentweb.emulator.usage import Usage

_TOLD = ("compact-2026-01-12", "compact-2026-09-04", "server-side-fallback-")


#: Fewest tokens of thinking by effort: more than the 60 of a title, except at low.
_LEAST_THOUGHT = {"low": 20, "medium": 64, "high": 96, "xhigh": 160, "max": 256}


@dataclass(frozen=True, slots=True)
class Sampled:
    outcome: BilledAnswer
    #: What the cache will hold once the response has begun.
    plan: Plan


@dataclass(frozen=True, slots=True)
class Sampling:
    call: Call
    prepared: Prepared
    emulator: Emulator
    fault: Fault | None
    nonce: bytes
    plan: Plan

    def run(self) -> Sampled:
        is_listed = any(name.startswith(_TOLD) for name in self.call.betas)
        if self.call.body.get("compaction"):
            done = compaction.compact(
                self.call, self.prepared.view, self.prepared.chain, signed=True
            )
            spent = replace(self.plan.usage, output=done.output_tokens)
            return Sampled(
                BilledAnswer(done.answer(), Usage(), (spent,), is_listed=True), self.plan
            )
        order = compaction.order_in(self.call)
        if order is not None and compaction.is_due(order, self.prepared.tokens):
            return self._compact_first(order)
        sample = self._write_answer(self.prepared.view)
        outcome = BilledAnswer(sample.answer, self.plan.usage, (), is_listed=is_listed)
        return self._go_round(outcome, sample, self.prepared.line, self.plan)

    def _compact_first(self, order: json_codec.Object) -> Sampled:
        done = compaction.compact(self.call, self.prepared.view, self.prepared.chain, signed=False)
        spent = replace(self.plan.usage, output=done.output_tokens)
        if done.piece is None or order.get("pause_after_compaction"):
            return Sampled(
                BilledAnswer(done.answer(), Usage(), (spent,), is_listed=True), self.plan
            )
        view, line, plan = self.prepared.view, self.prepared.line, self.plan
        if done.piece.block["content"] is not None:
            view = compaction.view_after(view, done.piece)
            body = self.prepared.body | {"messages": list(view.messages)}
            line = self.emulator.counter.count_units(body, self.call.model.tokenizer)
            plan = plan_cache(line, self.call, self.emulator)
        sample = self._write_answer(view)
        answer = replace(sample.answer, pieces=(done.piece, *sample.answer.pieces))
        outcome = BilledAnswer(answer, plan.usage, (spent,), is_listed=True)
        sampled = self._go_round(outcome, sample, line, plan)
        writes = (*self.plan.writes, *sampled.plan.writes)
        both = replace(sampled.plan, writes=writes, started=self.plan.started)
        return replace(sampled, plan=both)

    def _go_round(
        self, outcome: BilledAnswer, sample: _Sample, line: list[Unit], plan: Plan
    ) -> Sampled:
        """List the iterations separately where there was more than one."""
        if sample.served_by:
            return Sampled(_bill_fallback(outcome, sample), plan)
        terms = LoopTerms(
            counter=self.emulator.counter,
            tokenizer=self.call.model.tokenizer,
            plan=lambda line, earlier: plan_cache(line, self.call, self.emulator, earlier),
            order=compaction.order_in(self.call),
            summary=self._summary,
        )
        return Sampled(*run_loop(outcome, line, plan, terms))

    def _summary(self) -> Piece | None:
        done = compaction.compact(self.call, self.prepared.view, self.prepared.chain, signed=False)
        return done.piece

    def _write_answer(self, view: Request) -> _Sample:
        reply, served_by = self._ask(view), ""
        first = reply
        if self.fault is not None:
            reply = change_reply(reply, self.fault)
        if reply.effective_stop == "refusal" and self.call.fallbacks:
            served_by = self.call.fallbacks[0]
            reply = _join_fallback(self.call.body["model"], reply, served_by, first)
        reply = replace(reply, results=run_open_calls(view))
        answer = compose(reply, self._terms(), self.prepared.chain)
        return _Sample(answer, served_by)

    def _ask(self, view: Request) -> Reply:
        if not view.max_tokens:
            return Reply((), "max_tokens")
        for scene in self.emulator.scenes:
            reply = scene(view)
            if reply is not None:
                return reply
        return say("I have nothing to say to that.")

    def _terms(self) -> Terms:
        call, prepared = self.call, self.prepared
        return Terms(
            model=call.model,
            account=call.account.organization,
            thinking=call.thinks and prepared.view.max_tokens > 0,
            updates=call.thinking_type == "between_tools",
            display=call.display,
            min_thinking=_LEAST_THOUGHT.get(call.effort, 0) if call.thinks else 0,
            max_tokens=prepared.view.max_tokens,
            room=max(0, call.model.window - prepared.tokens),
            stop_sequences=tuple(call.body.get("stop_sequences") or ()),
            nonce=self.nonce,
        )


@dataclass(frozen=True, slots=True)
class _Sample:
    answer: Answer
    #: The model that continued after the requested one declined; empty if none did.
    served_by: str


def _join_fallback(model: str, declined: Reply, served_by: str, reply: Reply) -> Reply:
    """Join the blocks before the refusal, the boundary, and the full answer of the other model."""
    category = (declined.stop_details or {}).get("category")
    boundary = {
        "type": "fallback",
        "from": {"model": model},
        "to": {"model": served_by},
        "trigger": {"type": "refusal", "category": category},
    }
    return replace(reply, blocks=(*declined.blocks, Raw(boundary), *reply.blocks))


def _bill_fallback(outcome: BilledAnswer, sample: _Sample) -> BilledAnswer:
    """Add the refusal as an iteration of its own, listed but not billed."""
    model = find_model(sample.served_by)
    served = model.id if model is not None else sample.served_by
    declined = Iteration("message", replace(outcome.prompt, output=0), is_billed=False)
    rows = (declined, Iteration("fallback_message", outcome.final, served))
    return replace(outcome, rows=rows, served_by=served, later=outcome.prompt)
