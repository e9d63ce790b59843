"""Did a change make a turn cheaper? This tree and a commit, asked in turn, several times.

Two runs on one machine differ by more than most changes do, because its speed changes by the
minute. So both trees and the relay are up, one is asked at a time, and each round asks them for a
few turns of each kind within seconds, in the reverse order of the round before. What counts is the
difference within a round: its mean, and the interval of the paired t-test at 95 %. An interval is
true for its own kind: of twenty that compare equal trees, one shows a difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from statistics import mean, stdev
from typing import Any, NamedTuple

from agentweb.bench.commit_trees import Tree
from agentweb.bench.processes import ROOT
from agentweb.bench.rivals.rival_pages import RELAY
from agentweb.bench.rivals.rival_sites import find_page, list_chats, run_side
from agentweb.bench.site_under_test import Site, run_emulator
from agentweb.bench.streaming import RATE
from agentweb.bench.turn_cost import TITLE_MODEL, Kind, Row, measure_kind

OURS = "this tree"
#: Rounds with which a run embedded takes less than five minutes on two cores.
ROUNDS = 6
#: Student's t, two-sided 95 %, for 1, 2, ... degrees of freedom; for more, the last is too wide.
_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
)  # fmt: skip


class _Served(NamedTuple):
    name: str
    #: The relay, or a mode of the product.
    side: str
    site: Site
    #: Conversations that nobody has asked in.
    chats: Iterator[Row]

    def measure(self, kind: Kind) -> Row:
        chats = list(islice(self.chats, kind.chats))
        return measure_kind(self.site, self.side, kind, chats) | {"side": self.name}


def measure(
    tree: Tree, mode: str, rounds: int, kinds: Sequence[Kind], report: Callable[[Row], None]
) -> list[Row]:
    """Measure both trees and the relay in rounds; report each row, return a row for each kind."""
    found: dict[str, dict[str, list[float]]] = {kind.name: {} for kind in kinds}
    with ExitStack() as stack:
        served = _serve(stack, tree, mode, rounds * sum(kind.chats for kind in kinds))
        for number in range(rounds):
            for kind in kinds:
                for one in served[:: -1 if number % 2 else 1]:
                    if kind.is_plain or not find_page(one.side):
                        row = one.measure(kind)
                        found[kind.name].setdefault(one.name, []).append(row["milliseconds"])
                        report(row)
    return [
        {"mode": mode, "kind": kind, "milliseconds": sides} | compare(sides[OURS], sides[tree.name])
        for kind, sides in found.items()
    ]


def _serve(stack: ExitStack, tree: Tree, mode: str, count: int) -> list[_Served]:
    """Serve the relay and both trees until the stack ends, each with so many conversations."""
    api = stack.enter_context(run_emulator(RATE))
    served = []
    for name, side, root in (
        (RELAY, RELAY, ROOT), (OURS, mode, ROOT), (tree.name, mode, tree.folder)
    ):  # fmt: skip
        site = stack.enter_context(run_side(side, api, None, TITLE_MODEL, root))
        served.append(_Served(name, side, site, iter(list_chats(site, side, count))))
    return served


def compare(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, Any]:
    """Return the mean of ours minus theirs, pair by pair, and its interval at 95 %."""
    differences = [one - other for one, other in zip(ours, theirs, strict=True)]
    middle, freedom = mean(differences), len(differences) - 1
    half = _T[min(freedom, len(_T)) - 1] * stdev(differences) / math.sqrt(freedom + 1)
    return {
        "difference": round(middle, 2),
        "low": round(middle - half, 2),
        "high": round(middle + half, 2),
    }


def format_comparison(row: Row) -> str:
    """Format a row of `measure` as lines."""
    lines = [f"{row['mode']}, {row['kind']}: ms of the processor, mean and range"]
    for side, taken in row["milliseconds"].items():
        lines.append(f"  {side:10} {mean(taken):7.1f}  ({min(taken):.1f} to {max(taken):.1f})")
    lines.append(
        f"  {'difference':10} {row['difference']:+7.1f}  (95 %: {row['low']:+.1f} to"
        f" {row['high']:+.1f}): {_judge(row)}"
    )
    return "\n".join(lines)


def _judge(row: Row) -> str:
    if row["low"] <= 0 <= row["high"]:
        return "no difference shown"
    return f"{OURS} is {'cheaper' if row['difference'] < 0 else 'dearer'}"
