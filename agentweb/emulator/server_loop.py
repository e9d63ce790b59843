"""The rounds of one answer: after tools that run on the API's side the model samples again.

A round is what the model wrote up to the results of its calls. The next round reads all of it: the
request, what was written before, and the results. The usage of the answer is the sum over the
rounds; `message_start` has that of the first. Results at the beginning belong to calls that an
earlier answer left open; the first round reads them. Each result may also trigger a compaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from agentweb.emulator import json_codec
from agentweb.emulator.answer import Piece
from agentweb.emulator.billed_answer import BilledAnswer, Iteration
from agentweb.emulator.cache import Plan
from agentweb.emulator.compaction import is_due
from agentweb.emulator.model_catalogue import Tokenizer
from agentweb.emulator.prompt_units import TokenCounter, Unit, total_tokens
from agentweb.emulator.usage import Usage

#: Plans how the cache serves a prompt, given what the earlier rounds wrote.
Planner = Callable[[list[Unit], tuple[Plan, ...]], Plan]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTerms:
    counter: TokenCounter
    tokenizer: Tokenizer
    plan: Planner
    #: The automatic compaction of the request, and the function that makes one.
    order: json_codec.Object | None
    summary: Callable[[], Piece | None]


@dataclass(slots=True)
class _Loop:
    terms: LoopTerms
    line: list[Unit]
    rows: list[Iteration]
    plans: list[Plan]
    pieces: list[Piece] = field(default_factory=list)

    def read(self, pieces: Sequence[Piece]) -> None:
        """Append what was written and the results to the prompt of the next round."""
        self.pieces += pieces
        body: json_codec.Object = {
            "messages": [{"role": "assistant", "content": [p.block for p in pieces]}]
        }
        self.line = self.line + self.terms.counter.count_units(body, self.terms.tokenizer)

    def begin_round(self) -> None:
        plan = self.terms.plan(self.line, tuple(self.plans))
        # The first round begins with the message itself, also if results precede its text.
        begins = len(self.pieces) if self.plans else 0
        self.plans.append(plan)
        self.rows.append(Iteration("message", plan.usage, first_block=begins))

    def end_round(self, written: Sequence[Piece]) -> None:
        row = self.rows[-1]
        output = sum(piece.tokens for piece in written)
        self.rows[-1] = replace(row, usage=replace(row.usage, output=output))

    def compact_if_due(self) -> None:
        order, size = self.terms.order, total_tokens(self.line)
        if order is None or not is_due(order, size):
            return
        made = self.terms.summary()
        if made is None or made.block["content"] is None:
            return
        spent = Usage(fresh=size, output=made.tokens)
        self.rows.append(Iteration("compaction", spent, first_block=len(self.pieces)))
        self.line = [unit for unit in self.line if unit.level != "messages"]
        self.read([made])


def run_loop(
    outcome: BilledAnswer, line: list[Unit], plan: Plan, terms: LoopTerms
) -> tuple[BilledAnswer, Plan]:
    """Return the answer with an iteration for each round, and the cache plan of all rounds."""
    answer = outcome.answer
    # A summary before the first round is already in its prompt.
    lead = [piece for piece in answer.pieces[:1] if piece.block["type"] == "compaction"]
    rounds = _rounds(answer.pieces[len(lead) :])
    if len(rounds) == 1 and not rounds[0][0]:
        return outcome, plan
    rows = [Iteration("compaction", usage) for usage in outcome.compactions]
    loop = _Loop(terms, line, rows, [], lead)
    for number, (results, written) in enumerate(rounds):
        loop.read(results)
        if number and not written and answer.stop_reason == "pause_turn":
            break
        if number:
            loop.compact_if_due()
        loop.begin_round()
        loop.read(written)
        loop.end_round(written)
    return _add_up(outcome, loop), _join(loop.plans)


def _add_up(outcome: BilledAnswer, loop: _Loop) -> BilledAnswer:
    rounds = [row.usage for row in loop.rows if row.kind == "message"]
    spent = sum(usage.output for usage in rounds[:-1])
    last = replace(rounds[-1], output=outcome.answer.output_tokens - spent)
    rows = (*loop.rows[:-1], replace(loop.rows[-1], usage=last))
    later = Usage()
    for usage in rounds[1:]:
        later = later.plus(replace(usage, output=0))
    return replace(
        outcome,
        answer=replace(outcome.answer, pieces=tuple(loop.pieces)),
        prompt=replace(rounds[0], output=0),
        later=later,
        compactions=tuple(row.usage for row in rows if row.kind == "compaction"),
        rows=rows,
    )


def _join(plans: Sequence[Plan]) -> Plan:
    return replace(plans[0], writes=tuple(write for plan in plans for write in plan.writes))


def _rounds(pieces: Sequence[Piece]) -> list[tuple[list[Piece], list[Piece]]]:
    """Return for each round the results it read and the blocks it wrote."""
    rounds: list[tuple[list[Piece], list[Piece]]] = [([], [])]
    for piece in pieces:
        results, written = rounds[-1]
        if piece.block["type"].endswith("_tool_result"):
            if written:
                rounds.append(([piece], []))
            else:
                results.append(piece)
        else:
            written.append(piece)
    return rounds
