"""Recomputes every budget window from its ledger, and compares costs with a provider's report."""

from __future__ import annotations

import json
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import CommandError
from django.core.management.base import BaseCommand, CommandParser

from conversations.budgets.booked_differences import book_differences, list_wanted
from conversations.budgets.grants import BudgetError, correct_window, recompute_window
from conversations.budgets.kept_costs import recompute_costs
from conversations.budgets.reconciliation import check_windows
from conversations.budgets.units import format_amount
from conversations.budgets.usage.provider_report import (
    Difference,
    Report,
    ReportError,
    compare_with_record,
    read_report,
)
from conversations.management.arguments import find_person_or_none, read_text
from conversations.models import BudgetWindow, User


class Command(BaseCommand):
    help = "Compare every budget window with its entries, and name what differs (exit code 1)."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action")
        check = actions.add_parser("check", help="name the windows that differ (the default)")
        recompute = actions.add_parser(
            "recompute", help="set windows, and what chats cost, to the entries"
        )
        correct = actions.add_parser("correct", help="enter a correction of one window")
        correct.add_argument("window", type=int, help="its number, as the admin shows it")
        correct.add_argument("amount", type=int, help="in its unit; negative gives back")
        compare = actions.add_parser("compare", help="compare a provider's report with the record")
        compare.add_argument("file", type=Path, help="its CSV file, of costs or of usage")
        compare.add_argument(
            "--book", action="store_true", help="book what is left of each day that is over"
        )
        for action in (recompute, correct, compare):
            action.add_argument("--reason", required=action is not compare, metavar="TEXT")
            action.add_argument("--by", metavar="NAME", help="whose decision it is")
        for action in (parser, check):
            action.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            match options["action"]:
                case "recompute":
                    self._recompute(options)
                case "correct":
                    self._correct(options)
                case "compare":
                    self._compare(options)
                    return
        except (BudgetError, ReportError) as error:
            raise CommandError(str(error), returncode=2) from error
        self._check(is_json=bool(options.get("json")))

    def _check(self, *, is_json: bool) -> None:
        problems = list(check_windows())
        count = BudgetWindow.objects.count()
        if is_json:
            found = {"windows": count, "found": [asdict(problem) for problem in problems]}
            self.stdout.write(json.dumps(found))
        else:
            for problem in problems:
                self.stdout.write(str(problem))
            words = f"{len(problems)} differences" if problems else "the ledger agrees"
            self.stdout.write(f"{count} windows, {words}")
        if problems:
            raise SystemExit(1)

    def _compare(self, options: dict[str, Any]) -> None:
        report = read_report(StringIO(read_text(options["file"]), newline=""))
        if options["book"]:
            self._book(report, options["reason"] or "", find_person_or_none(options["by"]))
        found = compare_with_record(report)
        reported = sum(row.reported for row in found.rows)
        recorded = sum(row.recorded for row in found.rows)
        booked = sum(row.booked for row in found.rows)
        for row in (*found.rows, Difference("in all", "", reported, recorded, booked)):
            amounts = (row.reported, row.recorded, row.more, row.booked)
            first, second, more, done = (format_amount(amount, found.unit) for amount in amounts)
            words = f"reported {first}, recorded {second}, difference {more}"
            words += f", booked {done}" if row.booked else ""
            self.stdout.write(f"{row.day} {row.model}".rstrip() + f": {words}")

    def _book(self, report: Report, reason: str, actor: User | None) -> None:
        wanted = list_wanted(compare_with_record(report))
        done = book_differences(report=report, wanted=wanted, reason=reason, actor=actor)
        entries = sum(row.windows for row in done)
        self.stdout.write(f"{len(done)} differences booked, {entries} entries of the ledger")

    def _recompute(self, options: dict[str, Any]) -> None:
        reason, actor = options["reason"], find_person_or_none(options["by"])
        keys = BudgetWindow.objects.order_by("pk").values_list("pk", flat=True)
        done = sum(
            recompute_window(window_id=key, reason=reason, actor=actor) for key in list(keys)
        )
        self.stdout.write(f"{done} windows recomputed")
        self.stdout.write(f"{recompute_costs()} sums of chats recomputed")

    def _correct(self, options: dict[str, Any]) -> None:
        entry = correct_window(
            window_id=options["window"],
            amount=options["amount"],
            reason=options["reason"],
            actor=find_person_or_none(options["by"]),
        )
        self.stdout.write(f"entry {entry.pk}: {entry.amount:,} in window {entry.window_id}")
