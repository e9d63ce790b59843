"""Measure the engine's own time: one call in a long history, and a whole session.

`calm` is the call after one more round when the whole history is in view and no reduction is
needed; `session` runs every call of a conversation under a real policy and window, so that history
is dropped on the way. Deciding and preparing are measured apart from joining the body. Times are
CPU time of the thread; a session runs in a process of its own, to measure its own peak of memory.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from conversations.context import pipeline
from conversations.context.pipeline import Reply, Situation, SummaryWanted
from conversations.context.policy.gauge import Report
from conversations.context.policy.policy import Policy
from conversations.context.view import wire
from conversations.context.view.cost_decision import Rates
from conversations.context.view.view import Message, View
from conversations.lab.accuracy import find_percentile
from conversations.lab.baselines import measure_baselines
from conversations.lab.made_conversations import make_messages
from conversations.lab.summarizer import extract_summary

_ENDLESS = 1_000_000_000_000
_CALM_CALLS = 6
#: Prices of a medium model, so that reductions for cost happen as in real use.
_RATES = Rates(2_000_000, 10_000_000, 2_500_000, 100_000)
_UNLIMITED = Policy(
    name="classic", input_token_budget=0, max_tool_result_chars=0, compaction_enabled=False,
    max_conversation_bytes=0,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Calm:
    """Milliseconds of one call with the whole history in view; `first` is the first measurement."""

    decide: float
    join: float
    first: float
    body_bytes: int


@dataclass(frozen=True, slots=True)
class Session:
    """A whole conversation: seconds in total, milliseconds per call, megabytes at its peak.

    `late` is the median of the last tenth of the calls.
    """

    calls: int
    seconds: float
    mean: float
    late: float
    p95: float
    most: float
    megabytes: float


@dataclass(frozen=True, slots=True)
class Row:
    messages: int
    calm: Calm
    session: Session
    floors: dict[str, float]

    @property
    def ratios(self) -> dict[str, float]:
        """The time of each baseline divided by the engine's time of a calm call."""
        return self._times(self.calm.decide)

    @property
    def amortised(self) -> dict[str, float]:
        """The same with the engine's mean call of a session, reductions included."""
        return self._times(self.session.mean)

    def _times(self, own: float) -> dict[str, float]:
        return {name: round(spent / max(own, 1e-6), 1) for name, spent in self.floors.items()}


def measure_length(count: int, policy: Policy, window: int, runs: int) -> Row:
    """Measure one length of history."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
        session = apart.submit(_measure_session, count, policy, window).result()
    return Row(count, _measure_calm(count, runs), session, _measure_floors(count, runs))


def compute_growth(rows: list[Row]) -> dict[str, float]:
    """Return the exponent by which times grow with the history: 0 is constant, 1 linear."""
    if len(rows) < 2:
        return {}
    first, last = rows[0], rows[-1]
    ratio = math.log(last.messages / first.messages)

    def order(before: float, after: float) -> float:
        return round(math.log(max(after, 1e-6) / max(before, 1e-6)) / ratio, 2)

    named = {
        "calm_decide": order(first.calm.decide, last.calm.decide),
        "join": order(first.calm.join, last.calm.join),
        "session_late_call": order(first.session.late, last.session.late),
        "session_seconds": order(first.session.seconds, last.session.seconds),
        "session_megabytes": order(*(max(1.0, row.session.megabytes) for row in (first, last))),
    }
    shared = first.floors.keys() & last.floors.keys()
    return named | {name: order(first.floors[name], last.floors[name]) for name in sorted(shared)}


def dump_rows(rows: list[Row]) -> dict[str, object]:
    """Return the measurements as data for JSON."""
    listed = [asdict(row) | {"ratios": row.ratios, "amortised": row.amortised} for row in rows]
    return {"rows": listed, "growth": compute_growth(rows)}


def _measure_calm(count: int, runs: int) -> Calm:
    made = list(make_messages(count - count % 2 + 1 + 2 * _CALM_CALLS * runs))
    view = View()
    for message in made[: -2 * _CALM_CALLS * runs]:
        view = view.append(_copy_unread(message))
    view, first = _prepare(view, _UNLIMITED, _ENDLESS, None)
    decides, joins = [], []
    for at in range(-2 * _CALM_CALLS * runs, 0, 2):
        for message in made[at : at + 2 or None]:
            view = view.append(_copy_unread(message))
        view, spent = _prepare(view, _UNLIMITED, _ENDLESS, _build_report(view))
        started = time.thread_time_ns()
        body = view.body
        joins.append(time.thread_time_ns() - started)
        decides.append(spent)
    return Calm(median(decides) / 1e6, median(joins) / 1e6, first / 1e6, len(body.encode()))


def _measure_session(count: int, policy: Policy, window: int) -> Session:
    before = _read_peak()
    view, spent = View(), list[int]()
    report: Report | None = None
    for message in make_messages(count):
        if message.kind == "answer":
            view, took = _prepare(view, policy, window, report)
            spent.append(took)
        view = view.append(_copy_unread(message))
        if message.kind == "answer":
            report = _build_report(view)
    ordered = sorted(spent) or [0]
    return Session(
        len(spent),
        sum(spent) / 1e9,
        sum(spent) / len(ordered) / 1e6,
        median(spent[-max(1, len(spent) // 10) :] or [0]) / 1e6,
        find_percentile(ordered, 95) / 1e6,
        ordered[-1] / 1e6,
        (_read_peak() - before) / 1e6,
    )


def _measure_floors(count: int, runs: int) -> dict[str, float]:
    messages = [
        {"role": message.role, "content": wire.decode(message.content)}
        for message in make_messages(count)
    ]
    return measure_baselines(messages, runs)


def _prepare(view: View, policy: Policy, window: int, report: Report | None) -> tuple[View, int]:
    """Prepare once; return the view and the engine's own nanoseconds, summaries excluded."""
    situation = Situation("claude-sonnet-5-5", window, 2_000, report, "", "", rates=_RATES)
    steps = pipeline.prepare(view, situation, policy)
    reply: Reply = None
    spent = 0
    while True:
        started = time.thread_time_ns()
        try:
            wish = steps.send(reply)
        except StopIteration as stop:
            return stop.value.view, spent + time.thread_time_ns() - started
        spent += time.thread_time_ns() - started
        reply = extract_summary(wish) if isinstance(wish, SummaryWanted) else None


def _build_report(view: View) -> Report:
    return Report(view.tokens + 2_000, view.tokens, 2_000, view.edits)


def _copy_unread(message: Message) -> Message:
    """Copy a message as it comes from storage, without anything parsed."""
    return Message(message.seq, message.kind, message.content, message.tokens)


def _read_peak() -> int:
    """Return the peak memory of this process in bytes, 0 where the system does not report it."""
    path = Path("/proc/self/status")
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    sizes = (int(line.split()[1]) * 1_024 for line in lines if line.startswith("VmHWM:"))
    return next(sizes, 0)
