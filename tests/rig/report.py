"""The report of a chaos run, and the sentence in tests/rig/README.md about the stored one."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentweb.marked_text import replace_marked

KEPT = Path(__file__).parent / "results" / "chaos.json"
README = Path(__file__).with_name("README.md")
#: Fewest kills of a run that is stored.
ENOUGH = 2_000
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
_SUMMARY = """`manage.py test --chaos` (seed {seed}) ran for {minutes} minutes while people talked:

- It killed {kills:,} processes ({split}), stopped {terminations} more, paused {pauses} and cut {cuts} connections.
- Load: {messages_acknowledged:,} acknowledged messages, {turns:,} turns ({states}), {takeovers:,} takeovers, {summaries} summaries, {tool_runs:,} tool runs, {model_requests:,} requests to the model.
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
            if name == "turns":
                self.turns = dict(Counter(self.turns) + Counter(value))
            elif name not in ("mode", "seed"):
                setattr(self, name, getattr(self, name) + value)


def render(found: dict[str, Any]) -> str:
    """Render what the README says about a run."""
    modes: list[dict[str, Any]] = found["modes"]
    states: Counter[str] = Counter()
    for mode in modes:
        states.update(mode["turns"])
    names = ("terminations", "pauses", "cuts", "messages_acknowledged", "takeovers", "summaries",
             "tool_runs", "model_requests", *WRONG)  # fmt: skip
    sums = {name: sum(mode[name] for mode in modes) for name in names}
    return _SUMMARY.format(
        kills=found["kills"],
        seed=found["seed"],
        minutes=round(found["seconds"] / 60),
        split=", ".join(f"{mode['kills']:,} {mode['mode']}" for mode in modes),
        turns=sum(states.values()),
        states=", ".join(f"{count:,} {state}" for state, count in states.most_common()),
        wrong=", ".join(f"{sums[name]} {words}" for name, words in WRONG.items()),
        **{name: sums[name] for name in names if name not in WRONG},
    )


def kept() -> dict[str, Any] | None:
    """Return the stored run; None without one."""
    if not KEPT.exists():
        return None
    found: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
    return found


def keep(found: dict[str, Any], file: Path = KEPT, readme: Path = README) -> bool:
    """Store a run of both modes that was long enough, and quote it in the README.

    Returns whether it is stored: a shorter run shows less than the present one.
    """
    modes = {mode["mode"] for mode in found["modes"] if mode["kills"]}
    if found["kills"] < ENOUGH or modes != {"embedded", "scaled"}:
        return False
    file.parent.mkdir(exist_ok=True)
    file.write_text(dumped(found), encoding="utf-8")
    return replace_marked(readme, MARKS, render(found))


def dumped(found: dict[str, Any]) -> str:
    return json.dumps(found, indent=1) + "\n"
