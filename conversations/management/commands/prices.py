"""The price book: list prices, load dated prices, ask the API for facts of its models."""

from __future__ import annotations

import asyncio
import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management import CommandError
from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from conversations.agent.ports import ModelFailed
from conversations.budgets.csv_import import LineRefused
from conversations.budgets.import_prices import COLUMNS, read_price
from conversations.budgets.price_book import NewPrice, PriceError, load_prices, refresh_models
from conversations.budgets.prices import filter_prices_at, find_unpriced_models
from conversations.conf import conf
from conversations.management.arguments import make_usage_error, read_text
from conversations.models import ApiModel, ModelPrice
from conversations.rendering.numbers import dollars

if TYPE_CHECKING:
    from conversations.claude.client import ModelFacts


class Command(BaseCommand):
    help = (
        "`prices list` shows prices in force, `prices load FILE` takes dated prices from a .csv or"
        f" .json file with {', '.join(COLUMNS)} (the last three may be empty), `prices refresh`"
        " asks the API for windows, lengths of answers and lifecycle of models, never for prices."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        listing = actions.add_parser("list", help="prices in force")
        listing.add_argument("--model", metavar="ID")
        listing.add_argument("--all", action="store_true", help="also those of other times")
        load = actions.add_parser(
            "load", help=f"take dated prices from a .csv or .json file with {', '.join(COLUMNS)}"
        )
        load.add_argument("file", type=Path)
        refresh = actions.add_parser(
            "refresh", help="ask the API for windows and lifecycle of its models, never for prices"
        )
        for action in (load, refresh):
            action.add_argument("--dry-run", action="store_true", help="change nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        match options["action"]:
            case "list":
                self._list(options)
            case "load":
                self._load(options["file"], dry_run=options["dry_run"])
            case _:
                self._refresh(dry_run=options["dry_run"])

    def _list(self, options: dict[str, Any]) -> None:
        rows = ModelPrice.objects.all() if options["all"] else filter_prices_at(timezone.now())
        if options["model"] is not None:
            _demand_model(options["model"])
            rows = rows.filter(model=options["model"])
        if not rows.exists():
            self.stdout.write("there is no price" if options["all"] else "no price is in force")
        for row in rows.order_by("model", "above_tokens", "kind", "effective_from"):
            tier = f" above {row.above_tokens:,}" if row.above_tokens else ""
            ends = f" to {row.effective_to:%Y-%m-%d}" if row.effective_to else ""
            self.stdout.write(
                f"{row.model_id} {row.kind}{tier}: {dollars(row.micros_per_million)} per million"
                f" from {row.effective_from:%Y-%m-%d}{ends}"
            )
        self._warn()

    def _load(self, file: Path, *, dry_run: bool) -> None:
        try:
            changes = load_prices(rows=list(_read_rows(file)), dry_run=dry_run)
        except PriceError as error:
            raise CommandError(str(error)) from error
        self._print_changes([str(each) for each in changes], dry_run=dry_run)

    def _refresh(self, *, dry_run: bool) -> None:
        if not settings.ANTHROPIC_API_KEY and not settings.ANTHROPIC_BASE_URL:
            raise make_usage_error("there is no API to ask: set ANTHROPIC_API_KEY")
        try:
            facts = asyncio.run(_fetch_models())
        except ModelFailed as error:
            raise CommandError(str(error)) from error
        self._print_changes(refresh_models(facts=facts, dry_run=dry_run), dry_run=dry_run)

    def _print_changes(self, changes: list[str], *, dry_run: bool) -> None:
        for change in changes:
            self.stdout.write(change)
        verb = "would change" if dry_run else "changed"
        self.stdout.write(f"{len(changes)} {verb}")
        self._warn()

    def _warn(self) -> None:
        for name, kinds in find_unpriced_models().items():
            text = f"{name} is enabled and has no price for {', '.join(kinds)}"
            self.stderr.write(self.style.WARNING(text))


def _demand_model(name: str) -> None:
    """Refuse a model that the catalogue lacks: nothing listed would read as no price."""
    known = list(ApiModel.objects.order_by("pk").values_list("pk", flat=True))
    if name not in known:
        raise make_usage_error(f"{name!r} is not in the catalogue; there are {', '.join(known)}")


async def _fetch_models() -> tuple[ModelFacts, ...]:
    from conversations.claude.client import Claude, Deadlines

    claude = Claude(
        api_key=settings.ANTHROPIC_API_KEY or "built-in-emulator",
        base_url=settings.ANTHROPIC_BASE_URL,
        deadlines=Deadlines(
            conf.first_event_seconds, conf.read_timeout_seconds, conf.attempt_seconds
        ),
    )
    try:
        return await claude.models()
    finally:
        await claude.close()


def _read_rows(file: Path) -> list[NewPrice]:
    """Read a file of prices; raises CommandError with the line that cannot be read."""
    text = read_text(file)
    try:
        rows = (
            json.loads(text) if file.suffix == ".json" else list(csv.DictReader(text.splitlines()))
        )
    except (ValueError, RecursionError, csv.Error) as error:
        raise make_usage_error(f"{file} cannot be read: {error}") from error
    if not isinstance(rows, list):
        raise make_usage_error(f"{file} is no list of prices")
    if not rows:
        raise make_usage_error(f"{file} has no prices")
    return [_read_row(row, f"{file}, price {at}") for at, row in enumerate(rows, 1)]


def _read_row(row: Any, where: str) -> NewPrice:
    if not isinstance(row, dict) or set(row) - set(COLUMNS) or not row.get("model"):
        raise make_usage_error(f"{where}: its columns are {', '.join(COLUMNS)}")
    if any(isinstance(value, list | dict) for value in row.values()):
        raise make_usage_error(f"{where}: each value is a text or a number")
    values = {name: str(row.get(name) or "").strip() for name in COLUMNS}
    if row.get("dollars_per_million") == 0:
        values["dollars_per_million"] = "0"
    try:
        return read_price(values)
    except LineRefused as error:
        raise make_usage_error(f"{where}: {error}") from None
