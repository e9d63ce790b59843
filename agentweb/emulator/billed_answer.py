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
    #: The model that made it, if it is not the requested one.
    model: str = ""
    is_billed: bool = True
    #: Index of the answer's first block that it wrote.
    first_block: int = 0

    def as_json(self) -> json_codec.Object:
        return self.usage.iteration(self.kind) | ({"model": self.model} if self.model else {})


@dataclass(frozen=True, slots=True)
class BilledAnswer:
    answer: Answer
    #: The prompt of the message iteration; all zero if there was none.
    prompt: Usage
    #: Compactions before it: billed, but not in the top-level usage.
    compactions: tuple[Usage, ...]
    #: Whether the usage lists the iterations.
    is_listed: bool
    #: The prompts of the message iterations after the first.
    later: Usage = _NONE
    #: All iterations in order, if there was more than one message iteration.
    rows: tuple[Iteration, ...] = ()
    #: The model that continued after the requested one declined; empty if none did.
    served_by: str = ""

    @property
    def first(self) -> Usage:
        """Return the usage known when the answer begins."""
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
        """Return the billed usage of a cut answer: of the rounds begun in its first `blocks`."""
        if not self.rows or self.served_by:
            return self.billed(replace(self.first, output=max(self.first.output, output)))
        begun_rows = [row for row in self.rows if row.first_block < max(1, blocks)]
        rounds = [row.usage for row in begun_rows if row.kind == "message"]
        left = output - sum(usage.output for usage in rounds[:-1])
        spent = [row.usage for row in begun_rows if row.kind != "message"]
        return (*spent, *rounds[:-1], replace(rounds[-1], output=max(1, left)))

    def iterations(self) -> json_codec.Object:
        """Return the `iterations` of a final usage; empty if the usage does not list them."""
        if not self.is_listed:
            return {}
        if self.rows:
            return {"iterations": [row.as_json() for row in self.rows]}
        rows = [usage.iteration("compaction") for usage in self.compactions]
        if self.prompt.prompt:
            rows.append(self.final.iteration("message"))
        return {"iterations": rows}
