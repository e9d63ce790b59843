"""How full the context is, and how that is known.

The figure is anchored on the last call as the API reported it (input, cache reads and cache writes,
plus the output), and moved by the estimated difference of the view since. No report is None, never
0; a report of another model does not count. What the API clears of a request by itself is included
in the figure (`steps/api_clearing.py` says why) and also kept apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from conversations.context.view.edits import Source, Trigger
from conversations.context.view.server_calls import FoundTokens, estimate_results
from conversations.context.view.view import Message, View

#: Bounds of the reported tokens per thousand estimated ones.
_LOWEST, _HIGHEST = 300, 3_000


@dataclass(frozen=True, slots=True)
class Report:
    """The last reply call as reported (context and output, with what the API cleared).

    `view_tokens` is the estimate of the view with the answer in it, `edits` the number of
    transformations that changed it by then, `overhead` the estimate of system prompt and tools.
    """

    tokens: int
    view_tokens: int
    overhead: int
    edits: int
    #: "counted" when it comes from counting this view, "estimated" when the call reported a sum.
    source: Source = "reported"


@dataclass(frozen=True, slots=True)
class Gauge:
    """`tokens` in context, `source` of the figure, and the model's `window`; all in tokens.

    `room` is how much of the window a request may fill, and `permille` the reported tokens per
    thousand estimated ones.
    """

    tokens: int
    source: Source
    window: int
    has_report: bool = True
    room: int = 0
    permille: int = 1_000
    #: How many of the tokens the API will clear before the model reads them.
    cleared: int = 0

    def __post_init__(self) -> None:
        if not self.room:
            object.__setattr__(self, "room", self.window)

    def passes(self, threshold: int, setting: str) -> Trigger | None:
        """Return the trigger when the figure is greater than the threshold; 0 means never."""
        if threshold <= 0 or self.tokens <= threshold:
            return None
        return Trigger(self.tokens, threshold, self.source, setting)

    def passes_or_room(self, threshold: int, setting: str) -> Trigger | None:
        """Like `passes`, and also when the request has outgrown its room; 0 still means never."""
        if 0 < self.room < threshold:
            return self.passes(self.room, "window_reserve_tokens")
        return self.passes(threshold, setting)

    @property
    def seen(self) -> int:
        """Tokens the model will see."""
        return self.tokens - self.cleared

    @property
    def excess(self) -> int:
        """Estimated tokens to remove so that the request fits; 0 when it fits."""
        over = self.seen - self.room
        return over * 1000 // self.permille + 1 if over > 0 else 0


@dataclass(frozen=True, slots=True)
class LoopFigures:
    """The usage of an answer in which the API may have run its own tools.

    Then `read` is a sum, which is billed: each round reads the request and everything before the
    round. `first` is what the first round read, None where that is unknown.
    """

    first: int | None
    read: int
    written: int
    cleared: int = 0

    def estimate_size(self, found: FoundTokens, request: int) -> int:
        """Estimate the tokens in context after the answer; `request` is the estimate before it.

        Only the results are not reported. Each round reads the results before it, so `read` gives
        their total; their own estimates give only the proportion of each.
        """
        first = min(self.read, request) if self.first is None else self.first
        if first >= self.read:
            return self.read + self.written + found.trailing
        rest = self.read - found.rounds * first - (found.rounds - 1) * self.written // 2
        # Without inner results the rest is the leading ones, which `first` does not include.
        inner = max(0, rest) * found.inner // found.reads if found.reads else max(0, rest)
        return first + self.written + min(inner, self.read - first) + found.trailing


def anchor_report(report: Report, answer: Message, figures: LoopFigures | None) -> Report:
    """Return the report, with an estimate for an answer in which the API ran its own tools.

    `figures` is None where the API reported the size of its last round.
    """
    if figures is None or not answer.shape.server_results:
        return report
    request = report.view_tokens - answer.tokens + report.overhead
    size = figures.estimate_size(estimate_results(answer), request)
    return replace(report, tokens=size + figures.cleared, source="estimated")


def measure_context(
    view: View, overhead: int, report: Report | None, window: int, room: int = 0
) -> Gauge:
    """Measure how full the context would be if the view were sent now."""
    if report is None:
        return Gauge(overhead + view.tokens, "estimated", window, has_report=False, room=room)
    permille = _permille(report)
    moved = view.tokens - report.view_tokens + overhead - report.overhead
    tokens = max(0, report.tokens + moved * permille // 1000)
    source = report.source if view.edits == report.edits else "estimated"
    return Gauge(tokens, source, window, room=room, permille=permille)


def is_edited(view: View, report: Report | None) -> bool:
    """Return whether the view was changed since the reported call, not only appended to."""
    return report is None or report.edits != view.edits


def _permille(report: Report) -> int:
    """Return reported tokens per thousand estimated ones in this conversation, bounded."""
    estimated = report.view_tokens + report.overhead
    return max(_LOWEST, min(_HIGHEST, report.tokens * 1000 // max(1, estimated)))
