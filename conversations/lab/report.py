"""The totals of a replay: calls, tokens, money, transformations, facts, rules, time.

A conversation's report is made from its record (recorded or read from the log) and a world; the
reports of several conversations are added up for each policy. Money is integer micro-dollars, each
call rounded by the price list itself; cached and uncached cost price the very same calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from conversations.agent.prices import PriceList
from conversations.agent.usage import Usage
from conversations.lab.accuracy import find_percentile
from conversations.lab.fact_search import FactSearch
from conversations.lab.facts import FactOutcome, FactScorer, Shares
from conversations.lab.recall_cost import Recalls
from conversations.lab.records import Record
from conversations.lab.replay_setup import World
from conversations.lab.replayer import Replayer, Step

Watch = Callable[[Step], None]


@dataclass(slots=True)
class Tokens:
    """Tokens as billed; a call's input is the sum of the first three fields."""

    fresh: int = 0
    read: int = 0
    written: int = 0
    output: int = 0

    @property
    def input(self) -> int:
        return self.fresh + self.read + self.written

    def add(self, usage: Usage) -> None:
        self.fresh += usage.input
        self.read += usage.cache_read
        self.written += usage.cache_write
        self.output += usage.output

    def merge(self, other: Tokens) -> None:
        self.fresh += other.fresh
        self.read += other.read
        self.written += other.written
        self.output += other.output


@dataclass(slots=True)
class Report:
    """What happened under one policy; money in micro-dollars, times in nanoseconds of CPU."""

    policy: str
    window: int = 0
    conversations: int = 0
    calls: int = 0
    #: Turns that ended because the context was full, and calls larger than the window.
    ended: int = 0
    overruns: int = 0
    violations: list[str] = field(default_factory=list)
    peak: int = 0
    tokens: Tokens = field(default_factory=Tokens)
    summaries: Tokens = field(default_factory=Tokens)
    summary_calls: int = 0
    #: Applied and expected transformations by kind; the others by outcome.
    applied: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    freed: int = 0
    prefix_breaks: int = 0
    cost: int = 0
    summary_cost: int = 0
    cost_uncached: int = 0
    #: Calls of recall that make up for facts out of view, and what they cost.
    recalls: int = 0
    recall_cost: int = 0
    #: What a policy that knows the future would have cost (`clairvoyant.py`); 0 if unknown.
    optimum: int = 0
    #: Facts that the agent was shown, those of them with a sole source, and facts it made itself.
    facts: Shares = field(default_factory=Shares)
    sole: Shares = field(default_factory=Shares)
    own: Shares = field(default_factory=Shares)
    decide: list[int] = field(default_factory=list)
    join: list[int] = field(default_factory=list)

    def add_step(self, step: Step, prices: PriceList, writer: PriceList | None = None) -> None:
        """Add one call; `writer` are the prices of another model that writes summaries."""
        self.overruns += step.overruns
        self.violations += step.violations
        for change in step.changes:
            if change.outcome == "applied":
                self.applied[change.kind] += 1
                self.freed += change.tokens_before - change.tokens_after
            elif change.outcome == "expected":
                self.applied[change.kind] += 1
            else:
                self.others[change.outcome] += 1
        for usage in step.summaries:
            self._add_summary(usage, prices)
        for usage in step.apart:
            self._add_summary(usage, writer or prices)
        self.decide.append(step.decide_ns)
        if step.usage is None:
            self.ended += not step.violations
            return
        self.calls += 1
        self.tokens.add(step.usage)
        self.peak = max(self.peak, step.usage.context)
        self.cost += prices.cost(step.usage)
        self.cost_uncached += prices.cost(strip_cache(step.usage))
        self.prefix_breaks += not step.keeps_prefix
        self.join.append(step.join_ns)

    def _add_summary(self, usage: Usage, prices: PriceList) -> None:
        self.summary_calls += 1
        self.summaries.add(usage)
        self.summary_cost += prices.cost(usage)
        self.cost_uncached += prices.cost(strip_cache(usage))

    def add_fact(self, found: FactOutcome) -> None:
        (self.own if found.is_own else self.facts).add(found)
        if found.fact.is_sole and not found.is_own:
            self.sole.add(found)

    def add_recall(self, usage: Usage, prices: PriceList) -> None:
        self.recalls += usage.output > 0
        self.recall_cost += prices.cost(usage)
        self.cost_uncached += prices.cost(strip_cache(usage))

    def merge(self, other: Report) -> None:
        """Add the report of other conversations."""
        for name in (
            "conversations", "calls", "ended", "overruns", "summary_calls", "freed",
            "prefix_breaks", "cost", "summary_cost", "cost_uncached", "recalls", "recall_cost",
            "optimum",
        ):  # fmt: skip
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.peak = max(self.peak, other.peak)
        self.applied.update(other.applied)
        self.others.update(other.others)
        for mine, more in (
            (self.tokens, other.tokens), (self.summaries, other.summaries),
        ):  # fmt: skip
            mine.merge(more)
        self.facts.merge(other.facts)
        self.sole.merge(other.sole)
        self.own.merge(other.own)
        self.violations += other.violations
        self.decide += other.decide
        self.join += other.join

    @property
    def is_clean(self) -> bool:
        return not self.violations and not self.overruns

    @property
    def total_cost(self) -> int:
        return self.cost + self.summary_cost + self.recall_cost


def simulate_record(
    record: Record, world: World, watch: Watch | None = None, search: FactSearch | None = None
) -> Report:
    """Replay one conversation and report on it; `watch` is called with every call.

    `search` may be shared by the replays of one record.
    """
    report = Report(world.policy.name, world.window, conversations=1)
    search, bills = search or FactSearch(record), world.bills_recalls
    scorer = FactScorer(record, search, with_own=bills)
    recalls = Recalls(world.tokenizer) if bills else None
    for step in Replayer(record, world).steps():
        report.add_step(step, world.prices, world.writer)
        outcomes = scorer.score(step)
        for found in outcomes:
            report.add_fact(found)
        for usage in recalls.list_usages(step, outcomes) if recalls else ():
            report.add_recall(usage, world.prices)
        if watch is not None:
            watch(step)
    for found in scorer.list_missed():
        report.add_fact(found)
    return report


def strip_cache(usage: Usage) -> Usage:
    """Return the usage of the same call without a prompt cache."""
    return Usage(usage.context, usage.output, 0, 0, 0)


def dump_report(report: Report) -> dict[str, Any]:
    """Return a report as data for JSON."""
    return {
        "policy": report.policy,
        "window": report.window,
        "conversations": report.conversations,
        "calls": report.calls,
        "turns_ended_for_room": report.ended,
        "window_overruns": report.overruns,
        "violations": report.violations,
        "peak_input_tokens": report.peak,
        "input_tokens": report.tokens.input,
        "tokens": _dump_tokens(report.tokens),
        "summary_calls": report.summary_calls,
        "summary_tokens": _dump_tokens(report.summaries),
        "transformations": dict(sorted(report.applied.items())),
        "not_applied": dict(sorted(report.others.items())),
        "tokens_freed": report.freed,
        "prefix_breaks": report.prefix_breaks,
        "cost_micros": report.total_cost,
        "summary_cost_micros": report.summary_cost,
        "cost_uncached_micros": report.cost_uncached,
        "recalls": report.recalls,
        "recall_cost_micros": report.recall_cost,
        "clairvoyant_micros": report.optimum,
        "facts": _dump_shares(report.facts),
        "sole_facts": _dump_shares(report.sole),
        "own_facts": _dump_shares(report.own),
        "engine_ms": compute_spread(report.decide),
        "join_ms": compute_spread(report.join),
    }


def compute_tenths(times: list[int]) -> list[float]:
    """Return the mean of each tenth of the calls in milliseconds, first to last."""
    borders = [len(times) * part // 10 for part in range(11)]
    parts = [times[start:end] for start, end in pairwise(borders)]
    return [round(sum(part) / max(1, len(part)) / 1e6, 3) for part in parts]


def compute_spread(times: list[int]) -> dict[str, float]:
    """Return mean, 95th percentile and maximum of nanoseconds, in milliseconds."""
    ordered = sorted(times) or [0]
    figures = {
        "mean": sum(ordered) / len(ordered), "p95": find_percentile(ordered, 95), "max": ordered[-1]
    }  # fmt: skip
    return {name: round(value / 1e6, 3) for name, value in figures.items()}


def _dump_tokens(tokens: Tokens) -> dict[str, int]:
    return {
        "fresh": tokens.fresh, "read": tokens.read, "written": tokens.written,
        "output": tokens.output,
    }  # fmt: skip


def _dump_shares(shares: Shares) -> dict[str, int]:
    return {
        "needed": shares.needed, "in_view": shares.in_view, "in_view_or_named": shares.named,
        "in_view_or_found": shares.found, "in_view_or_usably_named": shares.usable,
        "recoverable": shares.recoverable,
    }  # fmt: skip
