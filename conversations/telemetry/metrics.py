"""Metrics: one table of them all; a no-op without the extra, or while switched off.

Label values are from closed sets (states, kinds, route names) or from the catalogue (models). If a
set exceeds its bound nevertheless, new values are counted as `other`, so that no input can fill the
collector's memory. Values are per process and start at zero.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

#: The most sets of label values of one metric.
MOST_SETS = 300
OTHER = "other"
_QUICK = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SLOW = (0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 40, 60, 120, 300, 600)


class Metric:
    """One named metric; it counts nothing until metrics are switched on."""

    def __init__(
        self,
        kind: Literal["Counter", "Gauge", "Histogram"],
        name: str,
        meaning: str,
        labels: tuple[str, ...] = (),
        buckets: tuple[float, ...] = (),
    ) -> None:
        self.kind, self.name, self.meaning, self.labels = kind, name, meaning, labels
        self._options = {"buckets": buckets} if buckets else {}
        self._made: Any = None
        self._seen: set[tuple[str, ...]] = set()

    def make(self, registry: Any) -> None:
        import prometheus_client

        kind = getattr(prometheus_client, self.kind)
        self._made = kind(
            f"agentweb_{self.name}", self.meaning, self.labels, registry=registry, **self._options
        )

    def drop(self) -> None:
        self._made, self._seen = None, set()

    def add(self, amount: float = 1, **labels: object) -> None:
        if self._made is not None:
            self._find_series(labels).inc(amount)

    def observe(self, value: float, **labels: object) -> None:
        if self._made is not None:
            self._find_series(labels).observe(value)

    def set(self, value: float, **labels: object) -> None:
        if self._made is not None:
            self._find_series(labels).set(value)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Count one more for the duration of a block."""
        self.add(1)
        try:
            yield
        finally:
            self.add(-1)

    @contextmanager
    def timed(self, **labels: object) -> Iterator[None]:
        """Observe the duration of a block."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.observe(time.monotonic() - began, **labels)

    def _find_series(self, labels: dict[str, object]) -> Any:
        if not self.labels:
            return self._made
        values = tuple(str(labels[name])[:100] or "none" for name in self.labels)
        if values not in self._seen and len(self._seen) >= MOST_SETS:
            values = (OTHER,) * len(self.labels)
        self._seen.add(values)
        return self._made.labels(*values)


TURNS_ENDED = Metric("Counter", "turns_ended", "Turns by final state.", ("state", "reason"))
TURNS_LIVE = Metric("Gauge", "turns_live", "Turns that run in this process.")
TURNS_WAITING = Metric("Gauge", "turns_waiting", "Turns of the site that wait for a worker.")
QUEUE_AGE = Metric("Gauge", "queue_age_seconds", "How long the oldest of them has waited.")
TAKEOVERS = Metric("Counter", "lease_takeovers", "Turns taken from dead workers.", ("state",))
SWEEP_RUNS = Metric("Counter", "sweep_runs", "Sweeps for turns of dead workers.")
CALLS = Metric("Counter", "calls", "Calls of the API.", ("purpose", "model", "status"))
CALL_SECONDS = Metric(
    "Histogram", "call_seconds", "Duration of calls.", ("purpose", "model"), _SLOW
)
FIRST_EVENT_SECONDS = Metric(
    "Histogram", "first_event_seconds", "Time to the first event.", ("purpose", "model"), _SLOW
)
TOKENS = Metric("Counter", "tokens", "Tokens, as billed.", ("purpose", "model", "kind"))
COST = Metric("Counter", "cost_micros", "Cost of calls in micro-dollars.", ("purpose", "model"))
REFUSALS = Metric("Counter", "refusals", "Calls that were not admitted.", ("code",))
TRANSFORMATIONS = Metric(
    "Counter", "transformations", "Reductions of the context.", ("kind", "outcome")
)
TOOL_CALLS = Metric("Counter", "tool_calls", "Calls of tools.", ("tool", "state"))
SOCKETS = Metric("Gauge", "sockets", "Open sockets of this process.")
FRAMES = Metric("Counter", "frames_sent", "Frames sent to browsers.")
RESYNCS = Metric("Counter", "resyncs", "Snapshots sent, the first of each socket included.")
REQUESTS = Metric(
    "Histogram", "request_seconds", "Requests by route.", ("route", "method", "status"), _QUICK
)
LOG_INS_FAILED = Metric("Counter", "log_ins_failed", "Failed log-ins.")
DATABASE_UP = Metric("Gauge", "database_up", "Whether the database answers.")
POOL = Metric("Gauge", "database_pool", "Connections of this process.", ("state",))
LOOP_LAG = Metric(
    "Histogram", "event_loop_lag_seconds", "How late the event loop comes round.", (), _QUICK
)
LOOP_BLOCKS = Metric(
    "Counter", "event_loop_blocks", "Times that something held the event loop for long.", ("by",)
)
ALL = tuple(each for each in globals().values() if isinstance(each, Metric))
_registry: Any = None


def switch_on() -> None:
    """Start counting; raises ImportError without the extra."""
    global _registry  # noqa: PLW0603
    import prometheus_client

    if _registry is None:
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        _registry = prometheus_client.CollectorRegistry(auto_describe=True)
        prometheus_client.ProcessCollector(registry=_registry)
        for metric in ALL:
            metric.make(_registry)


def switch_off() -> None:
    """Stop counting, and forget all values."""
    global _registry  # noqa: PLW0603
    _registry = None
    for metric in ALL:
        metric.drop()


def is_on() -> bool:
    return _registry is not None


def render_exposition() -> tuple[bytes, str]:
    """Return all metrics in Prometheus' text format, and its content type."""
    from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

    return generate_latest(_registry), CONTENT_TYPE_LATEST
