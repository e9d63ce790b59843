"""An answer with every sampling iteration it took, as usage tells and the bill adds them up."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentweb.emulator import wire
from agentweb.emulator.answer import Answer
from agentweb.emulator.usage import Usage


@dataclass(frozen=True, slots=True)
class Outcome:
    answer: Answer
    #: The prompt of the message iteration; all zero if there was none.
    prompt: Usage
    #: Compactions before it: billed, but not in the top-level figures.
    compactions: tuple[Usage, ...]
    #: Usage lists the iterations.
    told: bool

    @property
    def first(self) -> Usage:
        """As known when the answer begins."""
        return replace(self.prompt, output=1) if self.prompt.prompt else self.prompt

    @property
    def final(self) -> Usage:
        if not self.prompt.prompt:
            return self.prompt
        answer = self.answer
        return replace(self.prompt, output=answer.output_tokens, thinking=answer.thinking_tokens)

    def billed(self, last: Usage) -> tuple[Usage, ...]:
        return (*self.compactions, last) if last.prompt else self.compactions

    def iterations(self) -> wire.Object:
        """The `iterations` of a final usage, if the request is told of them."""
        if not self.told:
            return {}
        rows = [usage.iteration("compaction") for usage in self.compactions]
        if self.prompt.prompt:
            rows.append(self.final.iteration("message"))
        return {"iterations": rows}
