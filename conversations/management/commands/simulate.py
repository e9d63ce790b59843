"""Replays recorded conversations under policies, side by side; no network, no key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import chain, product
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management import CommandError
from django.core.management.base import BaseCommand, CommandParser
from django.db import DatabaseError, connection
from django.utils.module_loading import import_string

from conversations.budgets.prices import load_price_list
from conversations.conf import conf, read_site_overrides
from conversations.context.policy.policy import PRESETS, Policy, PolicyError, build_policy
from conversations.context.view import envelope
from conversations.lab import report, report_table
from conversations.lab.accuracy import Accuracy, measure_errors, summarise_errors
from conversations.lab.cache import find_minimum
from conversations.lab.clairvoyant import Clairvoyant
from conversations.lab.fact_search import FactSearch
from conversations.lab.made_tasks import make_tasks
from conversations.lab.records import Record, RecordError, read_records
from conversations.lab.replay_setup import World
from conversations.lab.replayer import Step
from conversations.lab.report import Report, simulate_record
from conversations.lab.simulated_tokenizer import (
    RECONSTRUCTED,
    Tokenizer,
    build_tokenizer,
    find_reconstructed,
    scale_estimate,
)
from conversations.lab.summarizer import Summarizer, extract_summary, fail_summary, use_stand_in
from conversations.log.loaded_path import REMEMBERED
from conversations.models import ApiModel, Conversation
from conversations.operations.scratch_database import use_empty_database
from conversations.reductions.conversation_settings import choose_rates, load_summary_prices
from conversations.reductions.policy import list_tool_actions
from conversations.reductions.trial_subject import RECALL, TrialError, build_record

#: The emulator is above this package in the layers, so its function is named, not imported.
STAND_IN = "agentweb.emulator.summarize_text"
#: How the names of files with recordings end, where a folder is given.
_RECORDS = (".jsonl", ".jsonl.gz")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


class Command(BaseCommand):
    help = (
        "Replay recorded conversations (JSON lines, plain or .gz) under context policies, with"
        " cost, reductions and facts in view side by side, and how near the estimate of tokens came"
        " to recorded counts; no key, no network."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "files", nargs="*", metavar="FILE",
            help="a file, or a folder with files *.jsonl and *.jsonl.gz",
        )  # fmt: skip
        parser.add_argument(
            "--conversation", metavar="UUID", help="replay this conversation of the log, too"
        )
        parser.add_argument(
            "--policy", action="append", metavar="NAME", help="a preset; several make columns"
        )
        parser.add_argument(
            "--set", action="append", default=[], metavar="KEY=VALUE", dest="numbers",
            help="a number of the policy, for all of them",
        )  # fmt: skip
        parser.add_argument("--model", default="", metavar="ID", help="default: the site's model")
        parser.add_argument(
            "--window", type=int, action="append", metavar="N",
            help="default: the model's; several make more columns",
        )  # fmt: skip
        parser.add_argument(
            "--summarizer", choices=("emulator", "extractive", "none"), default="extractive"
        )
        parser.add_argument(
            "--scale", type=int, default=100, metavar="PERCENT",
            help="bill so many percent of what the tokenizer counts",
        )  # fmt: skip
        parser.add_argument(
            "--tokenizer", choices=("words", RECONSTRUCTED, "estimate"),
            help=f"how the API counts: by words, by the package {RECONSTRUCTED} (the default where"
            " it is installed), or like the engine's own estimate",
        )  # fmt: skip
        parser.add_argument(
            "--synthetic", action="store_true",
            help="replay synthetic tasks too: mails, pages and PDFs in parts, paths, commands",
        )  # fmt: skip
        parser.add_argument("--dump-requests", metavar="DIR", help="write every request there")
        parser.add_argument("--limit", type=int, metavar="N", help="replay at most N records")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--markdown", action="store_true", help="print one Markdown table")

    def handle(self, *args: Any, **options: Any) -> None:
        with _use_catalogue():
            worlds = _read_worlds(options)
            self._replay(options, worlds)

    def _replay(self, options: dict[str, Any], worlds: list[World]) -> None:
        records = self._records(options["files"], options["limit"])
        if options["synthetic"]:
            records += make_tasks()
        if options["conversation"]:
            records.append(_read_logged(options["conversation"]))
        if not records:
            raise CommandError("there is no conversation in these files", returncode=2)
        dump = Path(options["dump_requests"]) if options["dump_requests"] else None
        found: list[tuple[str, Report]] = []
        sums = [Report(world.policy.name, world.window) for world in worlds]
        is_many = len({world.window for world in worlds}) > 1
        for record in records:
            search = FactSearch(record)
            clairvoyant = Clairvoyant(record, worlds[0], search)
            for world, total in zip(worlds, sums, strict=True):
                name = f"{world.policy.name}{f'_{world.window}' * is_many}"
                watch = _make_writer(dump / _make_file_name(name), record) if dump else None
                one = simulate_record(record, world, watch, search)
                one.optimum = clairvoyant.find_cost(
                    world.policy.promise(world.window), world.window
                )
                found.append((record.id, one))
                total.merge(one)
        gauge = summarise_errors(chain.from_iterable(map(measure_errors, records)))
        self._print(options, worlds, found, sums, gauge)
        for name, one in found:
            for violation in one.violations[:3]:
                self.stderr.write(f"{name} under {one.policy}: {violation}")
        if not all(one.is_clean for one in sums):
            raise SystemExit(1)

    def _print(
        self,
        options: dict[str, Any],
        worlds: list[World],
        found: list[tuple[str, Report]],
        sums: list[Report],
        gauge: Accuracy | None,
    ) -> None:
        """Write the reports in the chosen format."""
        if options["json"]:
            rows = [report.dump_report(one) | {"id": name} for name, one in found]
            self.stdout.write(json.dumps({
                "model": worlds[0].model, "window": worlds[0].window,
                "totals": [report.dump_report(one) for one in sums],
                "gauge_permille": asdict(gauge) if gauge else None,
                "conversations": rows,
            }))  # fmt: skip
        elif options["markdown"]:
            self.stdout.write(report_table.render_markdown(sums))
        else:
            parts = [
                report_table.render_conversations(found),
                report_table.render_totals(sums),
                report_table.render_pace(found),
                report_table.render_gauge(gauge),
            ]
            self.stdout.write("\n\n".join(filter(None, parts)))

    def _records(self, files: list[str], limit: int | None) -> list[Record]:
        """Read everything before anything is replayed, and report every unreadable line."""
        if limit is not None and limit < 1:
            raise CommandError("--limit must be at least 1", returncode=2)
        found: list[Record] = []
        wrong = 0
        for one in chain.from_iterable(map(read_records, _list_files(files))):
            if len(found) == limit:
                break
            if isinstance(one, RecordError):
                wrong += 1
                self.stderr.write(str(one))
            else:
                found.append(one)
        if wrong:
            raise CommandError(f"{wrong} unreadable: nothing was replayed", returncode=2)
        return found


@contextmanager
def _use_catalogue() -> Iterator[None]:
    """Use the catalogue and prices of the site; before it has a database, those it begins with."""
    try:
        has_catalogue = ApiModel._meta.db_table in connection.introspection.table_names()
    except DatabaseError as error:
        # SQLite's file may have no folder yet; a server that does not answer is another matter.
        if connection.vendor != "sqlite":
            raise CommandError(f"the database cannot be read: {error}", returncode=2) from error
        has_catalogue = False
    with nullcontext() if has_catalogue else use_empty_database():
        yield


def _list_files(names: list[str]) -> Iterator[Path]:
    for path in map(Path, names):
        if path.is_dir():
            yield from sorted(each for each in path.rglob("*") if each.name.endswith(_RECORDS))
        else:
            yield path


def _read_logged(public_id: str) -> Record:
    """Return the record of a stored conversation."""
    try:
        return build_record(Conversation.objects.get(public_id=public_id))
    except (Conversation.DoesNotExist, ValidationError) as error:
        raise CommandError(f"there is no conversation {public_id}", returncode=2) from error
    except TrialError as error:
        raise CommandError(f"{public_id}: {error}", returncode=2) from error


def _read_worlds(options: dict[str, Any]) -> list[World]:
    try:
        return list(_build_worlds(options))
    except DatabaseError as error:
        # Its tables are those of another version.
        text = f"the catalogue cannot be read, is the database migrated? {error}"
        raise CommandError(text, returncode=2) from error


def _build_worlds(options: dict[str, Any]) -> Iterator[World]:
    wanted = options["model"] or conf.model
    model = ApiModel.objects.filter(pk=wanted).first()
    if model is None:
        raise CommandError(f"the model {wanted!r} is not in the catalogue", returncode=2)
    windows = dict.fromkeys(options["window"] or [model.window])
    if min(windows) < 1:
        raise CommandError("--window must be at least 1", returncode=2)
    if not 10 <= options["scale"] <= 1_000:
        raise CommandError("--scale must be from 10 to 1000", returncode=2)
    names = dict.fromkeys(options["policy"] or [conf.policy])
    tokenizer = _choose_tokenizer(options["tokenizer"], options["scale"])
    prices = load_price_list(model.pk, datetime.now(UTC))
    writer = load_summary_prices(datetime.now(UTC))
    for window, name in product(windows, names):
        yield World(
            model=model.pk,
            window=window,
            policy=_read_policy(name, options["numbers"], window),
            prices=prices,
            rates=choose_rates(prices),
            minimum=find_minimum(model.pk),
            summarizer=_choose_summarizer(options["summarizer"]),
            tokenizer=tokenizer,
            recall_tools=RECALL,
            remembered=REMEMBERED,
            clears=model.clears,
            compacts=model.compacts,
            bills_recalls=True,
            writer=writer,
            writer_rates=writer.rates if writer else None,
        )


def _read_policy(name: str, numbers: list[str], window: int) -> Policy:
    if name not in PRESETS:
        known = ", ".join(PRESETS)
        raise CommandError(f"there is no policy {name!r}; there are {known}", returncode=2)
    try:
        # The site's own numbers apply only to the site's own policy; presets are compared as they
        # are.
        site = read_site_overrides() if name == conf.policy else {}
        policy = build_policy(name, site, dict(map(_read_number, numbers)), window=window)
        return replace(policy, actions=list_tool_actions())
    except PolicyError as error:
        raise CommandError(f"--set {error}", returncode=2) from error


def _read_number(text: str) -> tuple[str, Any]:
    key, mark, value = text.partition("=")
    if not mark or not key:
        raise CommandError(f"--set takes KEY=VALUE, not {text!r}", returncode=2)
    try:
        return key.strip(), json.loads(value)
    except ValueError:
        names = [name.strip() for name in value.split(",") if name.strip()]
        return key.strip(), names if key.strip().endswith("_tools") else value


def _choose_tokenizer(name: str | None, percent: int) -> Tokenizer:
    if name == "estimate":
        return scale_estimate(percent)
    reconstructed = None if name == "words" else find_reconstructed()
    if name == RECONSTRUCTED and reconstructed is None:
        raise CommandError(f"the package {name} is not installed", returncode=2)
    return build_tokenizer(reconstructed, percent)


def _choose_summarizer(name: str) -> Summarizer:
    match name:
        case "emulator":
            return use_stand_in(import_string(getattr(settings, "AGENTWEB_STAND_IN", STAND_IN)))
        case "none":
            return fail_summary
        case _:
            return extract_summary


def _make_writer(folder: Path, record: Record) -> Callable[[Step], None]:
    """Return a function that writes each request of a record to a file, numbered by the answer."""
    folder = folder / _make_file_name(record.id)
    folder.mkdir(parents=True, exist_ok=True)

    def write(step: Step) -> None:
        if step.usage is not None:
            body = envelope.join_body(step.envelope.text, step.messages)
            (folder / f"{step.at:06}.json").write_text(body, encoding="utf-8")

    return write


def _make_file_name(text: str) -> str:
    return _UNSAFE.sub("_", text).strip(".") or "_"
