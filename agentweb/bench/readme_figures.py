"""The figures in agentweb/bench/README.md, generated from a stored run and from nothing else.

Accepted runs are stored in the results folder, one file each, named by date; the newest is quoted.
Its figures must keep the limits, and a later run is compared with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentweb.bench.rivals.rival_sites import RIVALS
from agentweb.bench.site_under_test import EMBEDDED, SCALED
from agentweb.bench.streaming import RATE
from agentweb.marked_text import replace_marked

RESULTS = Path(__file__).parent / "results"
README = Path(__file__).with_name("README.md")
#: The name of the README's marks around the figures.
MARKS = "figures"
#: Largest relative loss of a figure before a comparison fails.
MOST_LOSS = 0.2

Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Floor:
    """A bound on a figure: a minimum with `is_least`, else a maximum."""

    name: str
    value: Callable[[Data], float]
    limit: float
    is_least: bool = False

    def holds(self, data: Data) -> bool:
        value = self.value(data)
        return value >= self.limit if self.is_least else value <= self.limit

    def loss(self, before: Data, now: Data) -> float:
        """Return the relative loss of the figure; negative if it improved."""
        old, new = self.value(before), self.value(now)
        change = (old - new) if self.is_least else (new - old)
        return change / old if old else float(change > 0)


def find_stream_row(data: Data, side: str, count: int) -> Data:
    """Return the row of a side at a number of conversations."""
    rows = data["stream"]
    row: Data = next(r for r in rows if (r["side"], r["conversations"]) == (side, count))
    return row


def _list_delta_rows(data: Data) -> list[Data]:
    """Return every row that counts deltas."""
    return [*data["stream"], *data["load"].get("frames", [])]


def find_load_row(data: Data, name: str, mode: str) -> Data:
    """Return the row of a subject in a mode."""
    return next(row for row in data["load"][name] if row["mode"] == mode)


FLOORS = (
    Floor("delta to browser p95, 50 conversations, embedded",
          lambda data: find_stream_row(data, EMBEDDED, 50)["latency"]["p95"], 300),
    Floor("delta to browser p95, 50 conversations, scaled out",
          lambda data: find_stream_row(data, SCALED, 50)["latency"]["p95"], 300),
    Floor("processor time of the relay's, 50 conversations, embedded",
          lambda data: find_stream_row(data, EMBEDDED, 50)["ratio"], 2),
    Floor("processor time of the relay's, 50 conversations, scaled out",
          lambda data: find_stream_row(data, SCALED, 50)["ratio"], 2),
    Floor("deltas that are stored and were never shown",
          lambda data: sum(row["missing"] for row in _list_delta_rows(data)), 0),
    Floor("deltas that no answer has",
          lambda data: sum(row["unstored"] for row in _list_delta_rows(data)), 0),
    Floor("idle sockets of one web process",
          lambda data: max(row["sockets"] for row in data["load"]["idle"] if not row["closed"]),
          1_000, is_least=True),
    Floor("kilobytes of an idle socket",
          lambda data: find_load_row(data, "idle", EMBEDDED)["kilobytes"], 60),
    Floor("stored acknowledgement p95, PostgreSQL",
          lambda data: find_load_row(data, "ack", SCALED)["p95"], 150),
    Floor("stored acknowledgement p95, SQLite",
          lambda data: find_load_row(data, "ack", EMBEDDED)["p95"], 300),
    Floor("seconds until 1,000 clients are back",
          lambda data: max(row["seconds_max"] for row in data["load"]["again"]), 60),
    Floor("clients that do not come back from a restart, or not to what is stored",
          lambda data: sum(row["away"] + row["unequal"] for row in data["load"]["again"]), 0),
    Floor("times as late beside a neighbour at all limits, words",
          lambda data: find_load_row(data, "neighbour", EMBEDDED)["latency_ratio"], 2),
    Floor("times as late beside a neighbour at all limits, acknowledgements",
          lambda data: find_load_row(data, "neighbour", EMBEDDED)["ack_ratio"], 2),
)  # fmt: skip


def list_runs(folder: Path = RESULTS) -> list[Path]:
    """List the accepted runs, newest last."""
    return sorted(folder.glob("*.json"))


def read_run(path: Path) -> Data:
    data: Data = json.loads(path.read_text(encoding="utf-8"))
    return data


def write_run(data: Data, folder: Path = RESULTS) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{re.sub(r'[^0-9]', '', data['machine']['date'])}.json"
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return path


def render_figures(data: Data) -> str:
    """Render the README's tables of a run."""
    return "\n".join(_render_lines(data))


def _render_lines(data: Data) -> Iterator[str]:
    machine = data["machine"]
    yield (
        f"Measured by `manage.py bench report` on {machine['date'][:10]}: {machine['cores']} cores,"
        f" Python {machine['python']}, load {machine['load']} before. Every conversation gets"
        f" {RATE} deltas a second. The relay is a plain Starlette application on uvicorn and"
        " uvloop by the SDK's `messages.stream`, measured in the same run." + _name_rivals(data)
    )
    yield ""
    yield (
        "| | conversations | delta to browser p50 / p95 / p99, ms | first delta, ms |"
        " processor s per 1,000 deltas | times the relay's | kB a socket |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for row in data["stream"]:
        times = " / ".join(f"{row['latency'].get(name, 0):,.0f}" for name in ("p50", "p95", "p99"))
        parts = ", ".join(f"{name} {spent:.2f}" for name, spent in row["parts"].items())
        spent = f"{row['processor']:.2f}" + (f" ({parts})" if len(row["parts"]) > 1 else "")
        yield (
            f"| {row['side']} | {row['conversations']} | {times} |"
            f" {row['first'].get('p50', 0):,.0f} | {spent} | {row['ratio'] or 0:.1f} |"
            f" {row['per_socket']:.0f} |"
        )
    yield ""
    yield from _render_turns(data.get("turn", {}))
    for name, rows in data["load"].items():
        yield from (_SENTENCES[name].format(**row) for row in rows)


def _render_turns(turn: Data) -> Iterator[str]:
    """Render what turns cost; older runs did not measure them."""
    if not turn:
        return
    yield "| a turn | | processor ms | bytes to the browser |"
    yield "|---|---|---:|---:|"
    for row in turn["turns"]:
        spent = f"{row['milliseconds']:.1f}"
        if len(row["parts"]) > 1:
            spent += f" ({', '.join(f'{name} {part:.1f}' for name, part in row['parts'].items())})"
        yield f"| {row['side']} | {row['kind']} | {spent} | {row['bytes']:,} |"
    yield ""
    yield "| a burst | | first word p50 / p95, ms | processor ms a turn | refused |"
    yield "|---|---|---:|---:|---:|"
    for row in turn["bursts"]:
        first = " / ".join(f"{row['first'].get(name, 0):,.0f}" for name in ("p50", "p95"))
        spent = f"{row['milliseconds']:.1f}"
        yield f"| {row['side']} | {row['kind']} | {first} | {spent} | {row['refused']} |"
    yield ""
    yield "| where a turn's processor time goes, embedded, ms |" + "".join(
        f" {row['kind']} |" for row in turn["profile"]
    )
    yield "|---|" + "---:|" * len(turn["profile"])
    for name in turn["profile"][0]["phases"]:
        yield f"| {name} |" + "".join(f" {row['phases'][name]:.1f} |" for row in turn["profile"])
    for name in ("statements", "transactions", "templates", "hops", "connections"):
        yield f"| {name} |" + "".join(f" {row[name]:g} |" for row in turn["profile"])
    yield ""


def _name_rivals(data: Data) -> str:
    """Return a sentence on the rivals in a run; "" without any."""
    sides = dict.fromkeys(row["side"] for row in data["stream"])
    if not (names := [name for name in sides if name in RIVALS]):
        return ""
    return f" So were {' and '.join(names)}, in their newest versions; they store nothing here."


_SENTENCES = {
    "idle": (
        "- {sockets:,} idle sockets on one web process ({mode}): {kilobytes} kB each,"
        " {processor_percent} % of a core"
    ),
    "ack": (
        "- a message is stored and acknowledged ({mode}, {people} people, {rate} a second) in"
        " {p50:.0f} ms (p95 {p95:.0f}, p99 {p99:.0f})"
    ),
    "frames": (
        "- {frames_a_second:,} frames a second to {sockets:,} sockets of one web process ({mode}),"
        " p95 {p95:.0f} ms, {processor_percent:.0f} % of a core"
    ),
    "again": (
        "- {clients:,} clients are back {seconds_max:.0f} s after their web process was stopped"
        " in the middle of answers ({mode}), {unequal} of them with something else than is stored"
    ),
    "neighbour": (
        "- beside a neighbour at all limits ({mode}) words take {latency_ratio} times and"
        " acknowledgements {ack_ratio} times as long (p95)"
    ),
}


def quote_run(data: Data, readme: Path = README) -> bool:
    """Write the figures between the README's marks; return False when it has none."""
    return replace_marked(readme, MARKS, render_figures(data))


def find_losses(before: Data, now: Data) -> list[str]:
    """List the figures that became worse by more than `MOST_LOSS`."""
    return [
        f"{floor.name}: {floor.value(before):g} before, {floor.value(now):g} now"
        for floor in FLOORS
        if floor.loss(before, now) > MOST_LOSS
    ]
