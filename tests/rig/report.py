"""The report of a chaos run, and what tests/rig/README.md says about the stored ones together."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentweb.marked_text import replace_marked

KEPT = Path(__file__).parent / "results" / "chaos.json"
README = Path(__file__).with_name("README.md")
#: Fewest kills of a run that is added to the stored ones.
ENOUGH = 1_000
#: The README's marks around the sentence.
MARKS = "chaos"
#: Failures that must not happen, as the README words them.
WRONG = {
    "lost_messages": "lost messages",
    "doubled_side_effects": "doubled side effects",
    "illegal_requests": "illegal requests",
    "ledger_drift": "ledger drift",
    "stuck_turns": "stuck turns",
    "bad_rows": "broken rows",
    "pages_out_of_step": "pages out of step",
    "bad_exits": "bad exits",
}
_SUMMARY = """`manage.py test --chaos` ran {minutes} minutes while people talked, with {seeds}:

- It killed {kills:,} processes ({split}), stopped {terminations} more, paused {pauses} and cut {cuts} connections.
- Load: {messages_acknowledged:,} acknowledged messages ({rate:.1f} a kill), {turns:,} turns ({states}), {takeovers:,} takeovers, {summaries} summaries, {tool_runs:,} tool runs, {model_requests:,} requests to the model.
- Result: {wrong}."""  # noqa: E501 - a line of the README


def print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@dataclass
class Report:
    """The events of a run, and what was wrong afterwards."""

    mode: str
    seed: int
    rounds: int = 0
    kills: int = 0
    terminations: int = 0
    pauses: int = 0
    cuts: int = 0
    bad_exits: int = 0
    messages_acknowledged: int = 0
    #: Turns by their final states.
    turns: dict[str, int] = field(default_factory=dict)
    takeovers: int = 0
    summaries: int = 0
    tool_runs: int = 0
    model_requests: int = 0
    lost_messages: int = 0
    doubled_side_effects: int = 0
    illegal_requests: int = 0
    ledger_drift: int = 0
    stuck_turns: int = 0
    bad_rows: int = 0
    pages_out_of_step: int = 0
    seconds: float = 0.0
    #: Failures as text.
    wrong: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not any(getattr(self, name) for name in WRONG)

    def blame(self, words: str) -> None:
        """Record a failure, and print it at once."""
        self.wrong.append(words)
        print_line(f"WRONG {words}")

    def add(self, other: Report) -> None:
        for name, value in vars(other).items():
            if isinstance(value, dict):
                setattr(self, name, dict(Counter(getattr(self, name)) + Counter(value)))
            elif name not in ("mode", "seed"):
                setattr(self, name, getattr(self, name) + value)


def render(runs: Sequence[dict[str, Any]]) -> str:
    """Render what the README says about all stored runs."""
    modes: list[dict[str, Any]] = [mode for run in runs for mode in run["modes"]]
    states: Counter[str] = Counter()
    kills: Counter[str] = Counter()
    for mode in modes:
        states.update(mode["turns"])
        kills[mode["mode"]] += mode["kills"]
    names = ("terminations", "pauses", "cuts", "messages_acknowledged", "takeovers", "summaries",
             "tool_runs", "model_requests", *WRONG)  # fmt: skip
    sums = {name: sum(mode[name] for mode in modes) for name in names}
    seeds = [str(run["seed"]) for run in runs]
    return _SUMMARY.format(
        kills=kills.total(),
        seeds=("seeds " if seeds[1:] else "seed ") + ", ".join(seeds),
        minutes=round(sum(run["seconds"] for run in runs) / 60),
        split=", ".join(f"{count:,} {mode}" for mode, count in kills.items()),
        rate=sums["messages_acknowledged"] / kills.total(),
        turns=sum(states.values()),
        states=", ".join(f"{count:,} {state}" for state, count in states.most_common()),
        wrong=", ".join(f"{sums[name]} {words}" for name, words in WRONG.items()),
        **{name: sums[name] for name in names if name not in WRONG},
    )


def kept(file: Path = KEPT) -> list[dict[str, Any]]:
    """Return the stored runs."""
    if not file.exists():
        return []
    found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return found


def keep(found: dict[str, Any], file: Path = KEPT, readme: Path = README) -> bool:
    """Add a run of both modes to the stored ones, and quote them all in the README.

    Returns whether it was added: one with few kills says little.
    """
    modes = {mode["mode"] for mode in found["modes"] if mode["kills"]}
    if found["kills"] < ENOUGH or modes != {"embedded", "scaled"}:
        return False
    runs = [*kept(file), found]
    file.parent.mkdir(exist_ok=True)
    file.write_text(dumped(runs), encoding="utf-8")
    return replace_marked(readme, MARKS, render(runs))


def dumped(found: object) -> str:
    return json.dumps(found, indent=1) + "\n"
