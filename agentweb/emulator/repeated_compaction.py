"""Several compactions in one request: each server tool result may trigger one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from agentweb.emulator import json_codec
from agentweb.emulator.answer import Piece
from agentweb.emulator.billed_answer import BilledAnswer, Iteration
from agentweb.emulator.compaction import is_due
from agentweb.emulator.model_catalogue import Tokenizer
from agentweb.emulator.prompt_units import count_block
from agentweb.emulator.usage import Usage


def compact_between(
    outcome: BilledAnswer,
    order: json_codec.Object,
    *,
    fixed: int,
    summary: Callable[[], Piece | None],
    tokenizer: Tokenizer,
) -> BilledAnswer:
    """Put a block behind every result that reaches the trigger; `fixed` tokens are no message."""
    pieces: list[Piece] = []
    rows = [Iteration("compaction", usage) for usage in outcome.compactions]
    prompt, written, context = outcome.prompt, 0, outcome.prompt.prompt
    later, steps = Usage(), list(_steps(outcome.answer.pieces))
    for number, step in enumerate(steps):
        pieces += step
        written += sum(piece.tokens for piece in step)
        context += sum(count_block(piece.block, tokenizer) for piece in step)
        if number == len(steps) - 1 or not is_due(order, context):
            continue
        made = summary()
        if made is None or made.block["content"] is None:
            continue
        rows.append(Iteration("message", replace(prompt, output=written)))
        rows.append(Iteration("compaction", Usage(fresh=context, output=made.tokens)))
        pieces.append(made)
        context, written = fixed + made.tokens, 0
        prompt = Usage(fresh=context)
        later = later.plus(prompt)
    if not later.prompt:
        return outcome
    spent = sum(row.usage.output for row in rows if row.kind == "message")
    rows.append(Iteration("message", replace(prompt, output=outcome.answer.output_tokens - spent)))
    compactions = tuple(row.usage for row in rows if row.kind == "compaction")
    answer = replace(outcome.answer, pieces=tuple(pieces))
    return replace(outcome, answer=answer, later=later, compactions=compactions, rows=tuple(rows))


def _steps(pieces: tuple[Piece, ...]) -> Iterator[list[Piece]]:
    """The answer cut behind each result of a tool on the API's side."""
    step: list[Piece] = []
    for piece in pieces:
        step.append(piece)
        if piece.block["type"].endswith("_tool_result"):
            yield step
            step = []
    if step:
        yield step
