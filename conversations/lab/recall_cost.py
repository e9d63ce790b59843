"""What it costs to know all the same: the recalls of a replay, so that bills compare.

A policy that removes more has smaller requests, and has to ask for what it removed. So every fact
that a call needed and that was not in view is recalled before that call, and billed:

- one request more that reads the whole context from the prompt cache (the call itself has written
  what was new), with the words of a tool call as output, and the result written to the cache; by id
  where a line of the request tells the original apart, or by a search whose result shows the fact;
- two if the search finds the original and it must be read then; one more if the first search fails
  and another one is needed, and one for each 20,000 characters before the fact, which is what one
  call shows;
- from then on the result is part of the context, read from the cache by every later call, until a
  reduction breaks the prefix; meanwhile that part of the original costs nothing again.

That a recalled result makes a reduction due earlier is left out, and so is what recalled facts that
no record lists would cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conversations.agent.usage import Usage
from conversations.lab.facts import FactOutcome
from conversations.lab.replayer import Step
from conversations.lab.simulated_tokenizer import Tokenizer

#: Tokens of a call of recall, and of the eight results of a search.
CALL, SEARCHED = 80, 1_300
#: Characters that one call shows.
SHOWN = 20_000


class Recalls:
    """The recalls of one replay, call by call."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._tokens = 0
        #: The characters of each original that were shown, from its beginning on.
        self._shown: dict[str, int] = {}

    def list_usages(self, step: Step, outcomes: Iterable[FactOutcome]) -> Iterator[Usage]:
        """Yield what the recalls before a call are billed, and what carrying their results costs.

        Of the latter only the reading is billed; its context is 0 tokens of input and output.
        """
        if step.usage is None:
            return
        if not step.keeps_prefix:
            self._tokens, self._shown = 0, {}
        if self._tokens:
            yield Usage(0, 0, self._tokens, 0, 0)
        for outcome in outcomes:
            for tokens in self._list_results(outcome):
                yield Usage(0, CALL, step.usage.context + self._tokens, CALL + tokens, 0)
                self._tokens += CALL + tokens

    def _list_results(self, outcome: FactOutcome) -> Iterator[int]:
        """Yield the tokens of each result that is needed to know a fact."""
        finding, fact = outcome.finding, outcome.fact.text
        ends = _find_ends(finding.holding, fact) if finding is not None else {}
        if finding is None or any(self._shown.get(key, -1) >= end for key, end in ends.items()):
            return
        chosen = outcome.told or finding.found
        if not outcome.told:
            yield SEARCHED
            if finding.found and finding.is_shown:
                return
            if not finding.found:
                yield SEARCHED
        if not finding.holding:
            # No original has it, so it stays unknown after the searches.
            return
        chosen = chosen or next(iter(finding.holding))
        text, end = finding.holding[chosen], ends[chosen]
        start = self._shown.get(chosen, 0)
        while start < end:
            yield self._tokenizer.text(text[start : start + SHOWN])
            start += SHOWN
        self._shown[chosen] = start


def _find_ends(holding: dict[str, str], fact: str) -> dict[str, int]:
    """Return where the fact ends in each original that has it."""
    return {key: text.find(fact) + len(fact) for key, text in holding.items()}
