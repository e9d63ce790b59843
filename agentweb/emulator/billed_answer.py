"""An answer with its sampling iterations, which the usage lists and the bill adds up."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentweb.emulator import json_codec
from agentweb.emulator.answer import Answer
from agentweb.emulator.usage import Usage

_NONE = Usage()


@dataclass(frozen=True, slots=True)
class Iteration:
    """One sampling iteration."""

    kind: str
    usage: Usage
    #: The model that made it, where it is not the one asked.
    model: str = ""
    is_billed: bool = True
    #: Index of the first block of the answer that it wrote.
    first_block: int = 0

    def as_json(self) -> json_codec.Object:
        return self.usage.iteration(self.kind) | ({"model": self.model} if self.model else {})


@dataclass(frozen=True, slots=True)
class BilledAnswer:
    answer: Answer
    #: The prompt of the message iteration; all zero if there was none.
    prompt: Usage
    #: Compactions before it: billed, but not in the top-level figures.
    compactions: tuple[Usage, ...]
    #: The usage lists the iterations.
    is_listed: bool
    #: The prompts of message iterations behind the first.
    later: Usage = _NONE
    #: Every iteration in its order, where there was more than one of the message.
    rows: tuple[Iteration, ...] = ()
    #: The model that went on where the one asked declined; empty if none did.
    served_by: str = ""

    @property
    def first(self) -> Usage:
        """As known when the answer begins."""
        return replace(self.prompt, output=1) if self.prompt.prompt else self.prompt

    @property
    def final(self) -> Usage:
        if not self.prompt.prompt:
            return self.prompt
        answer = self.answer
        total = self.prompt.plus(self.later)
        return replace(total, output=answer.output_tokens, thinking=answer.thinking_tokens)

    def billed(self, last: Usage) -> tuple[Usage, ...]:
        if self.rows and last == self.final:
            return tuple(row.usage for row in self.rows if row.is_billed)
        return (*self.compactions, last) if last.prompt else self.compactions

    def billed_until(self, blocks: int, output: int) -> tuple[Usage, ...]:
        """What a cut answer costs: the rounds begun within so many blocks, and their output."""
        if not self.rows or self.served_by:
            return self.billed(replace(self.first, output=max(self.first.output, output)))
        begun_rows = [row for row in self.rows if row.first_block < max(1, blocks)]
        rounds = [row.usage for row in begun_rows if row.kind == "message"]
        left = output - sum(usage.output for usage in rounds[:-1])
        spent = [row.usage for row in begun_rows if row.kind != "message"]
        return (*spent, *rounds[:-1], replace(rounds[-1], output=max(1, left)))

    def iterations(self) -> json_codec.Object:
        """The `iterations` of a final usage, if the request is told of them."""
        if not self.is_listed:
            return {}
        if self.rows:
            return {"iterations": [row.as_json() for row in self.rows]}
        rows = [usage.iteration("compaction") for usage in self.compactions]
        if self.prompt.prompt:
            rows.append(self.final.iteration("message"))
        return {"iterations": rows}
