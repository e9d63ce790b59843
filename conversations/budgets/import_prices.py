"""Import of prices from a CSV file: a new price closes the one before it."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.utils import translation
from django.utils.translation import gettext as _

from conversations.budgets.amounts import Unreadable, parse_dollars, parse_moment
from conversations.budgets.csv_import import LineRefused, Plan, Row, import_rows
from conversations.budgets.price_book import NewPrice, PriceError, load_prices, write_rate
from conversations.models import ModelPrice, User

COLUMNS = ("model", "kind", "dollars_per_million", "above_tokens", "effective_from", "source")


def import_prices(*, text: str, actor: User, expected: str = "") -> Plan:
    """Import prices, all or none; a preview unless the digest is the `expected` one."""
    return import_rows(text, COLUMNS, lambda rows: lambda row: _import_row(row, actor), expected)


def read_price(row: Row) -> NewPrice:
    """Read the price of a row; raises LineRefused."""
    try:
        above = int(row["above_tokens"] or "0")
    except ValueError:
        raise LineRefused(
            _("%(text)s is no number of tokens") % {"text": repr(row["above_tokens"])}
        ) from None
    try:
        rate, begins = parse_dollars(row["dollars_per_million"]), row["effective_from"]
        starts = parse_moment(begins, ZoneInfo("UTC")) if begins else None
    except Unreadable as error:
        raise LineRefused(str(error)) from None
    return NewPrice(row["model"], row["kind"], rate, above, starts, row["source"])


def _import_row(row: Row, actor: User) -> tuple[str, str]:
    new = read_price(row)
    try:
        changes = load_prices(rows=[new])
    except PriceError as error:
        raise LineRefused(str(error)) from error
    if not changes:
        words = _("%(price)s: %(rate)s per million, as before")
        return "same", words % {"price": new, "rate": write_rate(new.rate)}
    made = ModelPrice.objects.latest("pk")
    with translation.override(None):  # the record is in one language
        record = f"From a CSV file: {changes[0]}"
    LogEntry.objects.create(
        user=actor,
        content_type=ContentType.objects.get_for_model(ModelPrice),
        object_id=str(made.pk),
        object_repr=str(made)[:200],
        action_flag=ADDITION,
        change_message=record,
    )
    return "create" if changes[0].before is None else "change", str(changes[0])
