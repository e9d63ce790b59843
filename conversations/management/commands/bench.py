"""Measure this installation. `bench context`: the engine beside what others do before each call."""

from __future__ import annotations

import argparse
import json
from typing import Any

from django.core.management import CommandError
from django.core.management.base import BaseCommand, CommandParser

from conversations.context.policy import PRESETS
from conversations.lab import bench

SIZES = "100,500,1000,10000,50000"


class Command(BaseCommand):
    help = "Measures: `bench context` the context engine's time and memory by length of history."

    def add_arguments(self, parser: CommandParser) -> None:
        subjects = parser.add_subparsers(dest="subject", required=True)
        context = subjects.add_parser("context", help="the context engine")
        context.add_argument("--sizes", type=_sizes, default=SIZES, metavar="N,N,...")
        context.add_argument("--runs", type=int, default=3, metavar="N", help="medians of so many")
        context.add_argument("--policy", default=_default(), metavar="NAME", help="of the session")
        context.add_argument("--window", type=int, default=200_000, metavar="N")
        context.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["policy"] not in PRESETS:
            known = ", ".join(PRESETS)
            text = f"there is no policy {options['policy']!r}; there are {known}"
            raise CommandError(text, returncode=2)
        if options["runs"] < 1 or options["window"] < 16_000:
            raise CommandError("--runs must be at least 1, --window at least 16000", returncode=2)
        policy = PRESETS[options["policy"]]
        rows: list[bench.Row] = []
        for size in options["sizes"]:
            rows.append(bench.measure(size, policy, options["window"], options["runs"]))
            if not options["json"]:
                self._line(rows[-1])
        if options["json"]:
            named = {"policy": policy.name, "window": options["window"], "runs": options["runs"]}
            self.stdout.write(json.dumps(named | bench.data(rows)))
            return
        orders = (f"{name} {order:.2f}" for name, order in bench.growth(rows).items())
        self.stdout.write("growth order (0 constant, 1 linear): " + ", ".join(orders))

    def _line(self, row: bench.Row) -> None:
        calm, whole = row.calm, row.session
        self.stdout.write(
            f"{row.messages:,} messages: one call {calm.decide:.3f} ms, joining"
            f" {calm.body_bytes / 1e6:.1f} MB {calm.join:.1f} ms, first look {calm.first:.0f} ms"
        )
        self.stdout.write(
            f"  session: {whole.calls:,} calls in {whole.seconds:.2f} s, per call mean"
            f" {whole.mean:.3f}, late {whole.late:.3f}, p95 {whole.p95:.3f}, most"
            f" {whole.most:.0f} ms, {whole.megabytes:.0f} MB"
        )
        for name, spent in row.floors.items():
            self.stdout.write(
                f"  {name:20} {spent:10.3f} ms  {row.ratios[name]:,.0f} times ours,"
                f" {row.amortised[name]:,.0f} times with all reductions of a session"
            )
        self.stdout.flush()


def _default() -> str:
    return "adaptive" if "adaptive" in PRESETS else "classic"


def _sizes(text: str) -> list[int]:
    try:
        sizes = sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers") from None
    if not sizes or sizes[0] < 2:
        raise argparse.ArgumentTypeError("a conversation has at least 2 messages")
    return sizes
