"""Token counts as the API reports them: cumulative, and clamped to what is possible.

`input` excludes what was read from or written to the cache; the size of the request is `context`.
Where the API lists its iterations, each is billed separately: a compaction is billed but not in the
top-level figures, and the last message iteration alone is the size of the request. The usage also
names what changes the price of the tokens (`FACTORS`), which a workspace may set: it can be kept in
one country.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from conversations.context.errors import WireError
from conversations.context.policy.gauge import LoopFigures
from conversations.context.view import wire

#: The key under which usage at the start of an answer is stored beside that of its end.
START = "message_start"
#: More tokens than any model accepts: a larger figure is an error of the sender.
MOST_TOKENS = 1_000_000_000
_INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
#: Rounds of its own tools that the API makes for one answer.
MOST_ROUNDS = 10
#: The key under which figures are kept that cannot be true, beside the sane ones before them.
MALFORMED = "malformed"
#: More searches than any request makes.
MOST_SEARCHES = 1_000


@dataclass(frozen=True, slots=True)
class Factor:
    """The factor, in thousandths, by which a value of a usage field changes the price of tokens."""

    field: str
    value: str
    per_mille: int
    source: str
    date: str
    #: Whether a workspace can set it for requests that do not name the field, as ours.
    is_unasked: bool = False


FACTORS = (
    Factor("inference_geo", "us", 1_100, "data residency, API docs", "2026-11-10", is_unasked=True),
    Factor("speed", "fast", 2_000, "fast mode of Opus 4.8 to 5.5, API docs", "2026-10-30"),
    Factor("service_tier", "batch", 500, "pricing, API docs", "2026-11-10"),
)
WHOLE = 1_000
#: The factors that a call of ours can be billed with: its worst cost includes them.
UNASKED = tuple(one.per_mille for one in FACTORS if one.is_unasked)


def read_factors(usage: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the price factors, in thousandths, that apply to an answer with this usage."""
    return tuple(one.per_mille for one in FACTORS if usage.get(one.field) == one.value)


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as last reported; `is_clamped` when a figure was impossible.

    `parts` are the iterations, if reported: what is billed. `last` is the size of the last message
    iteration, if it differs from that of the whole call.
    """

    input: int
    output: int
    cache_read: int
    cache_write_5m: int
    cache_write_1h: int
    raw: str = "{}"
    is_clamped: bool = False
    #: Whether one of the impossible figures is a count of tokens.
    is_miscounted: bool = False
    parts: tuple[Usage, ...] = ()
    last: int | None = None
    #: Tool uses whose results the API cleared, and the tokens that freed in the request.
    cleared_uses: int = 0
    cleared: int = 0
    #: Whether the figures came with the end of the answer; otherwise its output is unknown.
    is_final: bool = True
    #: Web searches that the API made for this answer.
    searches: int = 0
    #: Size of the request at the start of the answer, if the API ran its own tools; the input
    #: figures are then the sum over its rounds.
    first: int | None = None
    #: Price factors of the tokens, each in thousandths.
    factors: tuple[int, ...] = ()

    @property
    def is_trusted(self) -> bool:
        """Whether the figures are final and all of them possible."""
        return self.is_final and not self.is_clamped

    @property
    def billed(self) -> tuple[Usage, ...]:
        """The counts that are billed, each at the rates of its own prompt."""
        return self.parts or (self,)

    @property
    def cache_write(self) -> int:
        return self.cache_write_5m + self.cache_write_1h

    @property
    def context(self) -> int:
        """Size of the request in tokens, however they were billed."""
        if self.last is not None:
            return self.last
        return self.read if self.first is None else self.first

    @property
    def read(self) -> int:
        """All tokens of input that are billed."""
        return self.input + self.cache_read + self.cache_write

    @property
    def tier(self) -> int:
        """The prompt size that decides the rates; of a sum over rounds at least their mean.

        Each search adds one round.
        """
        is_sum = self.first is not None and self.last is None
        return max(self.context, self.read // (self.searches + 1)) if is_sum else self.context

    @property
    def loop(self) -> LoopFigures | None:
        """The figures to estimate the context after the answer from; None: `last` is its size."""
        if self.last is not None:
            return None
        return LoopFigures(self.first, self.read, self.output, self.cleared)

    @property
    def total(self) -> int:
        """All tokens, in and out."""
        return self.read + self.output

    @property
    def uncleared(self) -> int:
        """Tokens of the request before the API cleared any."""
        return self.context + self.cleared

    @property
    def spent(self) -> Usage:
        """The sum of what is billed."""
        return replace(_sum(self.billed), searches=self.searches)

    @property
    def most(self) -> int:
        """The largest count of tokens."""
        counts = (self.input, self.output, self.cache_read, self.cache_write)
        return max(*counts, *(part.most for part in self.parts), 0)

    def clamp(self, window: int) -> Usage:
        """Return what a model with this window can be billed for, flagged if it was more.

        A sum over the rounds of the API's own tools can be as many windows as there are rounds.
        """
        rounds = max(MOST_ROUNDS, self.searches + 1) if self.first is not None else 1
        limit = window * rounds
        if self.most <= limit:
            return self
        names = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")
        return replace(
            self,
            **{name: min(limit, getattr(self, name)) for name in names},
            parts=tuple(part.clamp(limit) for part in self.parts),
            is_clamped=True,
        )

    def raise_to(self, read: int, written: int) -> Usage:
        """Return the usage with at least so many tokens read and written."""
        return self.cut(self.input + max(0, read - self.read), written)

    def cached_for_an_hour(self) -> Usage:
        """Return the same usage with all that was written to the cache at an hour's lifetime.

        The split by lifetime comes with the start of an answer and leaves out what later rounds of
        the API's own tools write.
        """
        parts = tuple(part.cached_for_an_hour() for part in self.parts)
        return replace(self, cache_write_5m=0, cache_write_1h=self.cache_write, parts=parts)

    def cut(self, read: int, written: int, searches: int = 0) -> Usage:
        """Return what an interrupted stream is billed for; its last iteration gets the rest."""
        more = max(0, written - self.output)
        parts = tuple(replace(part, output=part.output + more) for part in self.parts[-1:])
        return replace(
            self,
            input=read,
            output=self.output + more,
            parts=(*self.parts[:-1], *parts),
            searches=max(self.searches, searches),
        )


def read_usage(raw: dict[str, Any]) -> Usage:
    """Read a `usage` object; a missing, negative, huge or malformed figure never becomes money.

    It may include the answer's `context_management`, which reports what was cleared, and under
    START the usage reported at the start of the answer.
    """
    total = _read_counts(raw)
    rows = wire.list_objects(raw.get("iterations"))
    compactions = [_read_counts(row) for row in rows if row.get("type") == "compaction"]
    others = [_read_counts(row) for row in rows if row.get("type") != "compaction"]
    counts = [_read_counts(row) for row in rows if row.get("type") == "message"]
    # Iterations that do not add up to the total are ignored.
    is_whole = _sum(others) == replace(total, is_clamped=False)
    edited = raw.get("context_management")
    edits = wire.list_objects(edited.get("applied_edits")) if isinstance(edited, dict) else []
    uses = [_read_figure(edit, "cleared_tool_uses") for edit in edits]
    tokens = [_read_figure(edit, "cleared_input_tokens") for edit in edits]
    served = raw.get("server_tool_use")
    served = served if isinstance(served, dict) else {}
    searches = _read_figure(served, "web_search_requests", MOST_SEARCHES)
    is_miscounted = bool(raw.get(MALFORMED)) or any(one.is_clamped for one in (total, *compactions))
    return replace(
        total,
        raw=wire.encode(raw),
        parts=(*compactions, *(others if is_whole else [total])) if rows else (),
        last=counts[-1].context if len(counts) > 1 else None,
        cleared_uses=sum(each.value for each in uses),
        cleared=sum(each.value for each in tokens),
        searches=searches.value,
        is_clamped=is_miscounted or _has_clamped(searches, *uses, *tokens),
        is_miscounted=is_miscounted,
        first=_read_first(raw.get(START), total),
        factors=read_factors(raw),
    )


def _read_first(raw: object, total: Usage) -> int | None:
    """Return the request's size at the start of the answer, at most the sum over all rounds."""
    first = _read_counts(raw).read if isinstance(raw, dict) else 0
    return min(first, total.read) or None


def read_start(usage: str) -> int | None:
    """Return the input of the first round from stored usage; None where usage is not a sum."""
    if f'"{START}"' not in usage:
        return None
    try:
        return read_usage(wire.decode(usage)).first
    except (WireError, TypeError, AttributeError):
        return None


def merge_usage(before: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """Return the earlier usage with the newer over it; usage is cumulative and never added up.

    An impossible new count does not replace an earlier one; it is recorded under MALFORMED.
    """
    found = {name: value for name, value in said.items() if value is not None}
    bad = {
        name: found.pop(name)
        for name in (*_INPUTS, "output_tokens")
        if name in found and name in before and not _is_possible(found[name])
    }
    kept = before | found
    return kept | {MALFORMED: kept.get(MALFORMED, {}) | bad} if bad else kept


def _is_possible(value: object) -> bool:
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return is_count and 0 <= value <= MOST_TOKENS  # type: ignore[operator]


def keep_start(began: dict[str, Any], ended: dict[str, Any]) -> dict[str, Any]:
    """Return the usage at the end of an answer, with that of its start under START."""
    counts = {name: began[name] for name in _INPUTS if began.get(name)}
    return ended | {START: counts} if counts else ended


def _sum(rows: Sequence[Usage]) -> Usage:
    return Usage(
        sum(row.input for row in rows),
        sum(row.output for row in rows),
        sum(row.cache_read for row in rows),
        sum(row.cache_write_5m for row in rows),
        sum(row.cache_write_1h for row in rows),
    )


class _Figure(NamedTuple):
    """A count, which is within its bounds, and whether the reported one was not."""

    value: int
    was_clamped: bool


def _read_figure(figures: dict[str, Any], name: str, most: int = MOST_TOKENS) -> _Figure:
    value = figures.get(name)
    number = value if isinstance(value, int) and not isinstance(value, bool) else 0
    clamped = max(0, min(most, number))
    is_other = clamped != value or isinstance(value, bool)
    return _Figure(clamped, value is not None and is_other)


def _has_clamped(*figures: _Figure) -> bool:
    return any(each.was_clamped for each in figures)


def _read_counts(raw: dict[str, Any]) -> Usage:
    creation = raw.get("cache_creation")
    split = creation if isinstance(creation, dict) else {}
    fresh = _read_figure(raw, "input_tokens")
    output = _read_figure(raw, "output_tokens")
    read = _read_figure(raw, "cache_read_input_tokens")
    written = _read_figure(raw, "cache_creation_input_tokens")
    hour = _read_figure(split, "ephemeral_1h_input_tokens")
    minutes = _read_figure(split, "ephemeral_5m_input_tokens")
    # The split by lifetime adds up to the total; without a total, its sum is used.
    total = max(written.value, hour.value + minutes.value)
    return Usage(
        fresh.value, output.value, read.value, total - hour.value, hour.value,
        is_clamped=_has_clamped(fresh, output, read, written, hour, minutes),
    )  # fmt: skip
