"""What a turn costs: processor time of all processes, statements, templates, thread hops, bytes.

One conversation asks at a time (with 400 deltas eight, because each takes ten seconds), so the
figure is a turn's own cost. The relay, and the rivals that are asked for, give the same answers in
the same run. What is counted is counted on a second site with a probe inside (`probed_site`),
because counting costs time. A burst is many people who ask within one second; what matters there is
the first word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from agentweb.bench.measured_job import Run, run_job
from agentweb.bench.probed_site import PATH
from agentweb.bench.rivals.rival_pages import RELAY
from agentweb.bench.rivals.rival_sites import find_page, list_chats, run_side
from agentweb.bench.site_under_test import EMBEDDED, MODEL, Site, run_emulator, run_site
from agentweb.bench.streaming import RATE, make_question
from agentweb.bench.turn_probe import PAGES, PHASES

TOOL_QUESTION = "What time is it in Tokyo?"
TITLE_MODEL = "claude-haiku-5-5"
BURSTS = (100, 200)
_PROBED = ("-m", "agentweb.bench.probed_site")
BURST_SECONDS = 1.0
_BURST_DELTAS, _PATIENCE = 5, 60.0
Row = dict[str, Any]


class Kind(NamedTuple):
    """A kind of turn: how many conversations are asked how often, and by what."""

    name: str
    deltas: int
    text: str
    chats: int
    turns: int
    at_once: int = 1
    pause: float = 0.0
    is_plain: bool = True


LONG = Kind("later turn, 400 deltas", 400, make_question(400 / RATE), 8, 2, 8)


def list_kinds(*, is_quick: bool) -> Iterator[Kind]:
    """Yield the kinds of turns; the conversations of a later turn have had one before."""
    some = 6 if is_quick else 40
    for deltas in (1, 5):
        text = make_question(deltas / RATE)
        yield Kind(f"later turn, {deltas} deltas", deltas, text, 1, some)
    yield Kind("first turn, 5 deltas, its title", 5, make_question(5 / RATE), some, 1, 1, 0.3)
    yield Kind("later turn with a tool round", 0, TOOL_QUESTION, 1, some, is_plain=False)
    if not is_quick:
        yield LONG


def measure(
    sides: Sequence[str],
    report: Callable[[Row], None],
    rivals: Path | None = None,
    *,
    is_quick: bool,
    has_bursts: bool,
) -> dict[str, list[Row]]:
    """Measure each kind of turn and the bursts on each side; report each row and return all."""
    found: dict[str, list[Row]] = {"turns": [], "bursts": []}
    bursts = () if not has_bursts else BURSTS[:1] if is_quick else BURSTS
    with run_emulator(RATE) as api:
        for side in (RELAY, *sides):
            with run_side(side, api, rivals, TITLE_MODEL) as tested:
                for kind in list_kinds(is_quick=is_quick):
                    if kind.is_plain or not find_page(side):
                        chats = list_chats(tested, side, kind.chats)
                        found["turns"].append(measure_kind(tested, side, kind, chats))
                        report(found["turns"][-1])
                for count in bursts:
                    found["bursts"].append(_measure_burst(tested, side, count))
                    report(found["bursts"][-1])
    return found


def measure_profile(*, is_quick: bool) -> dict[str, list[Row]]:
    """Count what turns do, and the processor time of their phases, on a site with a probe."""
    found = []
    with (
        run_emulator(RATE) as api,
        run_site(EMBEDDED, api, command=_PROBED, AGENTWEB_TITLE_MODEL=TITLE_MODEL) as tested,
    ):
        for kind in list_kinds(is_quick=is_quick):
            began: list[Row] = []
            take = partial(_take_counts, tested, began)
            chats = list_chats(tested, EMBEDDED, kind.chats)
            row = measure_kind(tested, EMBEDDED, kind, chats, take)
            counted = _difference(began[-1], tested.read_json(PATH), row["turns"])
            found.append({"kind": kind.name} | counted)
    return {"profile": found}


def measure_kind(
    tested: Site,
    side: str,
    kind: Kind,
    chats: list[Row],
    started: Callable[[], object] | None = None,
) -> Row:
    """Measure turns of a kind in new conversations; `started` is called once they have begun."""
    job = kind._asdict() | {
        "kind": "turns", "chats": chats, "page": find_page(side), "model": MODEL
    }  # fmt: skip
    job["seconds"] = _PATIENCE + kind.chats * kind.turns * (1 + kind.deltas / RATE)
    if kind.turns > 1:
        # The first turn of a conversation is not a later one, and that of a process makes much.
        run_job(tested, job | {"turns": 2})
    done = run_job(tested, job, started)
    turns = done.found["turns"]
    parts = {name: round(1e3 * spent / turns, 2) for name, spent in done.spent.items()}
    return {
        "side": side,
        "kind": kind.name,
        "turns": turns,
        "milliseconds": round(sum(parts.values()), 2),
        "parts": parts,
        "bytes": round(done.found["bytes"] / turns),
        "refused": done.found["refused"],
    }


def ask_at_once(tested: Site, side: str, count: int) -> Run:
    """Have so many people ask within a second, each in a conversation of its own."""
    return run_job(
        tested,
        {
            "kind": "stream",
            "page": find_page(side),
            "model": MODEL,
            "chats": list_chats(tested, side, count),
            "text": make_question(_BURST_DELTAS / RATE),
            "deltas": _BURST_DELTAS,
            "ramp": BURST_SECONDS,
            "seconds": _PATIENCE,
        },
    )


def _measure_burst(tested: Site, side: str, count: int) -> Row:
    done = ask_at_once(tested, side, count)
    return {
        "side": side,
        "kind": f"{count} ask within a second",
        "milliseconds": round(1e3 * sum(done.spent.values()) / count, 2),
        "first": done.found["first"],
        "refused": done.found["refused"],
    }


def _take_counts(tested: Site, to: list[Row]) -> None:
    to.append(tested.read_json(PATH))


def _difference(before: dict[str, Any], after: dict[str, Any], turns: int) -> Row:
    counts = ("statements", "transactions", "templates", "hops", "connections")
    row: Row = {
        name: round((after["counts"].get(name, 0) - before["counts"].get(name, 0)) / turns, 1)
        for name in counts
    }
    row["phases"] = {
        name: round(
            1e3 * (after["seconds"].get(name, 0.0) - before["seconds"].get(name, 0.0)) / turns, 2
        )
        for name in (*PHASES.values(), PAGES)
    }
    return row


def format_line(row: Row) -> str:
    """Format a row of `measure` as one line."""
    line = f"{row['side']:10} {row['kind']:34} {row['milliseconds']:7.1f} ms of the processor"
    if "first" in row:
        first = row["first"]
        line += (
            f" a turn; first word p50 {first.get('p50', 0):,.0f}, p95 {first.get('p95', 0):,.0f} ms"
        )
        return line + f"; {row['refused']} refused"
    parts = ", ".join(f"{name} {spent:.1f}" for name, spent in row["parts"].items())
    return line + f" ({parts}); {row['bytes']:,} bytes to the browser"


def format_profile(row: Row) -> Iterator[str]:
    """Format a row of `measure_profile`."""
    yield (
        f"{row['kind']}: {row['statements']:g} statements in {row['transactions']:g}"
        f" transactions, {row['templates']:g} templates, {row['hops']:g} thread hops,"
        f" {row['connections']:g} connections"
    )
    for name, spent in row["phases"].items():
        yield f"  {spent:7.2f} ms  {name}"
