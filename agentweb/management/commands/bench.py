"""Measure this installation: one subject a run, each beside a floor of the same run.

`context`, `render`, `pages`, `budgets` and `search` measure in this process; `stream`, `load` and
`report` start servers of their own (agentweb/bench/server_subjects.py).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.core.management import CommandError
from django.core.management.base import BaseCommand, CommandParser

from agentweb.bench import server_subjects
from conversations.context.policy.policy import PRESETS
from conversations.lab import engine_times
from conversations.lab.records import RecordError
from conversations.operations import scratch_database

SIZES = "100,500,1000,10000,50000"
LENGTHS = "5000,10000,20000,40000"


class Command(BaseCommand):
    help = "Measure this installation, each figure beside a floor measured in the same run."

    def add_arguments(self, parser: CommandParser) -> None:
        subjects = parser.add_subparsers(dest="subject", required=True)
        context = subjects.add_parser(
            "context",
            help="time per call of the context engine at 100 to 50,000 messages, beside naive ways"
            " in the same run",
        )
        context.add_argument("--sizes", type=_sizes, default=SIZES, metavar="N,N,...")
        context.add_argument("--runs", type=int, default=3, metavar="N", help="medians of so many")
        context.add_argument("--policy", default=_default(), metavar="NAME", help="of the session")
        context.add_argument("--window", type=int, default=200_000, metavar="N")
        render = subjects.add_parser(
            "render",
            help="rendering time and bytes sent per answer length, beside a plain relay of the same"
            " pieces in the same run",
        )
        render.add_argument("--lengths", type=_sizes, default=LENGTHS, metavar="N,N,...")
        render.add_argument("--step", type=int, default=32, metavar="N", help="characters a frame")
        render.add_argument("--tabs", type=int, default=4, metavar="N", help="that watch it")
        pages = subjects.add_parser(
            "pages",
            help="the pages of a conversation of 10,000 entries, and its next turn from prompt to"
            " request, beside a static page and a short conversation in the same run",
        )
        pages.add_argument("--entries", type=int, default=10_000, metavar="N")
        pages.add_argument("--conversations", type=int, default=2_000, metavar="N")
        pages.add_argument("--runs", type=int, default=5, metavar="N", help="medians of so many")
        budgets = subjects.add_parser(
            "budgets",
            help="opening and closing a call with no, one and many budgets, beside a transaction of"
            " one INSERT and one UPDATE",
        )
        budgets.add_argument("--runs", type=int, default=50, metavar="N", help="medians of so many")
        _add_search(subjects)
        _add_clients(subjects)
        server_subjects.add_arguments(subjects)
        for subject in subjects.choices.values():
            subject.add_argument("--json", action="store_true", help="print one JSON object")

    def run_from_argv(self, argv: list[str]) -> None:
        # So that what a run has written elsewhere is deleted, and its servers are stopped.
        signal.signal(signal.SIGTERM, _leave)
        super().run_from_argv(argv)

    def handle(self, *args: Any, **options: Any) -> None:
        measures: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "context": self._context, "render": self._render, "pages": self._pages,
            "budgets": self._budgets, "clients": self._clients, "search": self._search,
        }  # fmt: skip
        self._is_quiet = bool(options["json"])
        if options["subject"] in measures:
            found = measures[options["subject"]](options)
        else:
            found = server_subjects.measure(options["subject"], options, self._print)
        if options["json"]:
            self.stdout.write(json.dumps(found))

    def _print(self, text: str) -> None:
        if not self._is_quiet:
            self.stdout.write(text)
            self.stdout.flush()

    def _context(self, options: dict[str, Any]) -> dict[str, Any]:
        if options["policy"] not in PRESETS:
            known = ", ".join(PRESETS)
            text = f"there is no policy {options['policy']!r}; there are {known}"
            raise CommandError(text, returncode=2)
        if options["runs"] < 1 or options["window"] < 16_000:
            raise CommandError("--runs must be at least 1, --window at least 16000", returncode=2)
        policy = PRESETS[options["policy"]]
        rows: list[engine_times.Row] = []
        for size in options["sizes"]:
            rows.append(
                engine_times.measure_length(size, policy, options["window"], options["runs"])
            )
            for line in _context_lines(rows[-1]):
                self._print(line)
        orders = (
            f"{name} {order:.2f}" for name, order in engine_times.compute_growth(rows).items()
        )
        self._print("growth order (0 constant, 1 linear): " + ", ".join(orders))
        named = {"policy": policy.name, "window": options["window"], "runs": options["runs"]}
        return named | engine_times.dump_rows(rows)

    def _render(self, options: dict[str, Any]) -> dict[str, Any]:
        from agentweb.bench import made_markdown, rendering_cost

        if options["step"] < 1 or options["tabs"] < 1:
            raise CommandError("--step and --tabs must be at least 1", returncode=2)
        rows = []
        with scratch_database.use_empty_database():
            for shape in (*made_markdown.SHAPES, "thinking"):
                for length in options["lengths"]:
                    measured = rendering_cost.measure(
                        shape, length, options["step"], options["tabs"]
                    )
                    rows.append(asyncio.run(measured).data)
                    self._print(_RENDER_LINE.format(**rows[-1]))
        return {"step": options["step"], "tabs": options["tabs"], "rows": rows}

    def _search(self, options: dict[str, Any]) -> dict[str, Any]:
        from agentweb.bench import search_quality

        paths = options["paths"]
        sets = search_quality.read_sets(paths) if paths else search_quality.make_sets()
        try:
            rows = list(search_quality.measure_sets(sets))
        except (OSError, ValueError, KeyError, RecordError) as error:
            raise CommandError(f"a set cannot be read: {error}", returncode=2) from error
        for row in rows:
            self._print(search_quality.write_line(row))
        return {"sets": rows}

    def _pages(self, options: dict[str, Any]) -> dict[str, Any]:
        from agentweb.bench import page_times, request_times

        if min(options["entries"], options["conversations"], options["runs"]) < 1:
            raise CommandError("--entries, --conversations and --runs are at least 1", returncode=2)
        entries, runs = options["entries"], options["runs"]
        kinds: dict[str, Callable[[], list[page_times.Page]]] = {
            "talk": lambda: page_times.measure_conversation_pages(max(1, entries // 2), 0, runs),
            "agent": lambda: page_times.measure_conversation_pages(max(1, entries // 20), 9, runs),
            "turn": lambda: request_times.measure_requests(entries, runs),
            "lists": lambda: page_times.measure_list_pages(options["conversations"], runs),
        }
        found: dict[str, list[dict[str, Any]]] = {}
        with scratch_database.use_empty_database():
            for kind, measured in kinds.items():
                found[kind] = [page.data for page in measured()]
                for line in _page_lines(kind, found[kind]):
                    self._print(line)
        return {name: options[name] for name in ("entries", "conversations", "runs")} | found

    def _budgets(self, options: dict[str, Any]) -> dict[str, Any]:
        from agentweb.bench import budget_cost

        if options["runs"] < 1:
            raise CommandError("--runs must be at least 1", returncode=2)
        with scratch_database.use_empty_database():
            rows = [row.data for row in budget_cost.measure(options["runs"])]
        for row in rows:
            self._print(_BUDGET_LINE.format(**row))
        return {"runs": options["runs"], "rows": rows}

    def _clients(self, options: dict[str, Any]) -> dict[str, Any]:
        from agentweb.bench.clients import client_runs

        with TemporaryDirectory() as made:
            runs = client_runs.run_clients(options["folder"] or Path(made), self._print)
        if options["write"]:
            client_runs.write_table(runs)
        failed = [run.title for run in runs if not run.has_passed]
        if failed and not options["json"]:
            raise CommandError(f"did not pass: {', '.join(failed)}")
        return {"clients": [asdict(run) for run in runs]}


def _leave(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


_BUDGET_LINE = (
    "{budgets:3} budgets: a call is opened in {open:6.2f} ms ({statements} statements), of which"
    " budgets add {added:5.2f} ({added_processor:.2f} computed), and closed in {close:6.2f} ms, of"
    " which they add {added_close:5.2f}; opening takes {ratio:.1f} times one INSERT and UPDATE"
    " ({floor:.2f} ms)"
)
_RENDER_LINE = (
    "{shape:15} {characters:7,} characters: {milliseconds_per_1000:6.2f} ms per 1,000,"
    " {processor_ratio:5.1f} times the relay's; {bytes_per_character:5.2f} bytes per character,"
    " {bytes_ratio:4.2f} times; {parsed_per_character:5.1f} parsed; a tab more"
    " {tab_milliseconds_per_1000:.2f} ms per 1,000 (relay {relay_tab_milliseconds_per_1000:.2f})"
)


def _page_lines(kind: str, pages: Iterable[dict[str, Any]]) -> Iterable[str]:
    for page in pages:
        yield (
            f"{kind:6} {page['name']:18} {page['milliseconds']:9.1f} ms,"
            f" {page['processor']:8.1f} of them ours, {page['ratio']:6.2f} times the shortest's"
            f" {page['floor']:6.1f} ms; {page['queries']:3} statements, {page['size']:9,} bytes"
        )


def _context_lines(row: engine_times.Row) -> Iterable[str]:
    calm, whole = row.calm, row.session
    yield (
        f"{row.messages:,} messages: one call {calm.decide:.3f} ms, joining"
        f" {calm.body_bytes / 1e6:.1f} MB {calm.join:.1f} ms, first look {calm.first:.0f} ms"
    )
    yield (
        f"  session: {whole.calls:,} calls in {whole.seconds:.2f} s, per call mean"
        f" {whole.mean:.3f}, late {whole.late:.3f}, p95 {whole.p95:.3f}, most"
        f" {whole.most:.0f} ms, {whole.megabytes:.0f} MB"
    )
    for name, spent in row.floors.items():
        yield (
            f"  {name:20} {spent:10.3f} ms  {row.ratios[name]:,.0f} times ours,"
            f" {row.amortised[name]:,.0f} times with all reductions of a session"
        )


def _add_search(subjects: Any) -> None:
    search = subjects.add_parser(
        "search",
        help="recall of the search for originals, beside BM25 on the same texts and queries",
    )
    search.add_argument(
        "paths", nargs="*", type=Path, metavar="PATH",
        help="recordings, or a test collection in BEIR's format; default: synthetic tasks",
    )  # fmt: skip


def _add_clients(subjects: Any) -> None:
    clients = subjects.add_parser(
        "clients",
        help="other people's clients of the Messages API against the emulator; installs them"
        " below a folder, by pip and npm",
    )
    clients.add_argument("--folder", type=Path, metavar="FOLDER", help="kept for the next run")
    clients.add_argument("--write", action="store_true", help="write the table of the README")


def _default() -> str:
    return "adaptive" if "adaptive" in PRESETS else "classic"


def _sizes(text: str) -> list[int]:
    try:
        sizes = sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers") from None
    if not sizes or sizes[0] < 2:
        raise argparse.ArgumentTypeError("a list of numbers of at least 2")
    return sizes
