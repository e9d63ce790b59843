"""How well the gauge's estimate agrees with what the API counted when a session was recorded.

The recorded clients had a system prompt and tools that are not in the record; their tokens are
taken as the difference between the first call's count and its estimate, so the first call is not
scored. With a report the anchor is the previous call; its answer is estimated like everything
appended since, because the recorded output counts are those of the first event. Scoring ends where
the recorded client reduced its own context.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from conversations.context.policy.gauge import Report, measure_context
from conversations.context.view.view import View
from conversations.lab.records import Record

#: A request below this percent of the previous one was reduced by the recorded client.
_DROP = 90
_WINDOW = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Error:
    """Permille by which an estimate is off, without and with the report of the previous call."""

    unreported: int
    reported: int


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Errors in permille over a number of calls."""

    calls: int
    unreported_median: int
    unreported_p95: int
    reported_median: int
    reported_p95: int


def measure_errors(record: Record) -> list[Error]:
    """Compare the estimate of each call with its recorded count."""
    counted = {reading.at: reading.context for reading in record.readings if reading.context}
    found: list[Error] = []
    view, overhead, before = View(), 0, 0
    report: Report | None = None
    for at, message in enumerate(record.messages):
        actual = counted.get(at, 0)
        if actual:
            if actual * 100 < before * _DROP:
                break
            if report is None:
                overhead = max(0, actual - view.tokens)
            else:
                plain = measure_context(view, overhead, None, _WINDOW).tokens
                anchored = measure_context(view, overhead, report, _WINDOW).tokens
                found.append(Error(_measure_error(plain, actual), _measure_error(anchored, actual)))
            before = actual
            report = Report(actual, view.tokens, overhead, view.edits)
        view = view.append(message)
    return found


def summarise_errors(found: Iterable[Error]) -> Accuracy | None:
    """Summarise errors; None if there are none."""
    listed = list(found)
    if not listed:
        return None
    plain = sorted(error.unreported for error in listed)
    anchored = sorted(error.reported for error in listed)
    return Accuracy(
        len(listed),
        find_percentile(plain, 50),
        find_percentile(plain, 95),
        find_percentile(anchored, 50),
        find_percentile(anchored, 95),
    )


def find_percentile(ordered: Sequence[int], percent: int) -> int:
    """Return the smallest value of an ordered list that `percent` percent do not exceed."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def _measure_error(estimate: int, actual: int) -> int:
    return abs(estimate - actual) * 1_000 // actual
