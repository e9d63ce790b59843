"""A streamed answer from the emulator to the browser, next to a plain relay in the same run.

Every conversation gets 40 deltas a second whether or not they are read, so queueing shows as
latency. The emulator and the readers run in processes of their own, which are not counted. The
result is the ratio to the relay's processor time; wall time depends on the machine. A short answer
is read first, so that the first row does not include one-time costs of a process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentweb.bench.measured_job import run_job
from agentweb.bench.rivals.rival_pages import RELAY
from agentweb.bench.rivals.rival_sites import find_page, list_chats, run_side
from agentweb.bench.site_under_test import MODEL, Site, run_emulator

COUNTS = (1, 10, 50, 100, 200)
RATE = 40
#: Words of a delta: the emulator cuts answers into pieces of this many.
_WORDS = 2
#: Seconds between two prompts (four a second: as many as 50 people who each send one every 12
#: seconds), the part of an answer within which all have been sent, so that all are answered at the
#: same time, and the longest time, in seconds, to read a queue to its end.
_APART, _WITHIN, _PATIENCE = 0.25, 0.6, 45.0


@dataclass(frozen=True, slots=True)
class Row:
    """One side at one number of conversations; milliseconds, seconds of the processor."""

    side: str
    conversations: int
    latency: dict[str, float]
    first: dict[str, float]
    per_second: float
    #: Per 1,000 deltas: of all processes of the product, and of each.
    processor: float
    parts: dict[str, float]
    #: And of the reading process, which is not part of the product.
    readers: float
    #: Megabytes at the end, and kilobytes of the web process for each open socket.
    megabytes: dict[str, float]
    per_socket: float
    #: Deltas that arrived after the time of the row, that are stored but were never shown, and that
    #: are in no stored answer.
    late: int
    missing: int
    unstored: int

    @property
    def data(self) -> dict[str, Any]:
        return asdict(self)


def measure(
    counts: Sequence[int],
    sides: Sequence[str],
    seconds: float,
    report: Callable[[Row], None],
    rivals: Path | None = None,
) -> list[dict[str, Any]]:
    """Measure each side at each number of conversations; report each row and return all as data."""
    rows: list[Row] = []
    with run_emulator(RATE) as api:
        for side in sides:
            with run_side(side, api, rivals) as tested:
                _measure_row(tested, side, 1, 0.5)
                for count in counts:
                    rows.append(_measure_row(tested, side, count, seconds))
                    report(rows[-1])
    return add_ratios([row.data for row in rows])


def make_job(chats: list[dict[str, Any]], seconds: float, page: str = "") -> dict[str, Any]:
    """Describe answers of `seconds` seconds for the client, and whose pages read them."""
    ramp = min(_APART * (len(chats) - 1), _WITHIN * seconds)
    return {
        "kind": "stream",
        "page": page,
        "model": MODEL,
        "chats": chats,
        "text": make_question(seconds),
        "deltas": round(seconds * RATE),
        "ramp": ramp,
        "seconds": seconds + ramp + _PATIENCE,
    }


def make_question(seconds: float) -> str:
    """Return a prompt for an answer of `seconds` seconds."""
    return f"Answer in {round(seconds * RATE) * _WORDS} words of Markdown"


def _measure_row(tested: Site, side: str, count: int, seconds: float) -> Row:
    job = make_job(list_chats(tested, side, count), seconds, find_page(side))
    done = run_job(tested, job, is_compared=True)
    found, each = done.found, 1_000 / max(1, done.found["deltas"])
    parts = {name: round(spent * each, 4) for name, spent in done.spent.items()}
    return Row(
        side=side,
        conversations=count,
        latency=found["latency"],
        first=found["first"],
        per_second=round(found["deltas"] / found["seconds"], 1),
        processor=round(sum(parts.values()), 4),
        parts=parts,
        readers=round(found["processor"] * each, 4),
        megabytes={name: round(size / 1e6, 1) for name, size in done.memory.items()},
        per_socket=done.per_socket(),
        late=found["late"],
        missing=found["missing"],
        unstored=found["unstored"],
    )


def add_ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add to each row its processor time relative to the relay's; None without a relay."""
    floors = {row["conversations"]: row["processor"] for row in rows if row["side"] == RELAY}
    for row in rows:
        floor = floors.get(row["conversations"])
        row["ratio"] = round(row["processor"] / floor, 2) if floor else None
    return rows


LINE = (
    "{side:10} {conversations:3} conversations: delta to browser p50 {p50:,.0f}, p95 {p95:,.0f},"
    " p99 {p99:,.0f}, most {max:,.0f} ms; first {first:,.0f} ms; {per_second:,.0f} deltas a second;"
    " {processor:.2f} s of the processor per 1,000 ({parts}), the readers'"
    " {readers:.3f}; {per_socket:.0f} kB a socket;"
    " {late} late, {missing} missing, {unstored} unstored"
)


def format_line(row: Row) -> str:
    """Format a row as one line."""
    parts = ", ".join(f"{name} {spent:.2f}" for name, spent in row.parts.items())
    shown = {name: row.latency.get(name, float("nan")) for name in ("p50", "p95", "p99", "max")}
    first = row.first.get("p50", float("nan"))
    return LINE.format(**row.data | {"parts": parts, "first": first} | shown)
