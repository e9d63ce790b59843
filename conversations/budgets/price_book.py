"""The price book: dated, write-once rows; a new price closes the present one and is inserted.

What was billed keeps its price, so a price that replaces another starts now or later. It is in
force until the next scheduled one begins, which can be withdrawn until then. The API
reports facts of models (windows, lengths of answers, lifecycle) but no prices: a new model is
disabled until somebody has entered its prices.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.budgets.money_records import record_rows
from conversations.db import transact
from conversations.models import ApiModel, ModelPrice
from conversations.models.budgets import BudgetUnit
from conversations.models.catalogue import MOST_RATE

if TYPE_CHECKING:
    from conversations.claude.client import ModelFacts

#: A price whose start is at most this long ago counts as starting now.
GRACE = timedelta(minutes=5)
_FACTS = ("window", "max_output", "lifecycle", "retires_at")


class PriceError(Exception):
    """A price that cannot be loaded; the message says which and why."""

    code = "price"


@dataclass(frozen=True, slots=True)
class NewPrice:
    """A rate in micro-dollars per million tokens; `starts` None: now."""

    model: str
    kind: str
    rate: int
    above_tokens: int = 0
    starts: datetime | None = None
    source: str = ""

    def __str__(self) -> str:
        name = f"{self.model} {self.kind}"
        if not self.above_tokens:
            return name
        return _("%(price)s above %(number)s tokens") % {
            "price": name, "number": f"{self.above_tokens:,}"
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class PriceChange:
    """A price that was loaded, and the rate before it; None: there was none."""

    new: NewPrice
    before: int | None

    def __str__(self) -> str:
        parts = {
            "price": self.new,
            "rate": write_rate(self.new.rate),
            "begins": f"{self.new.starts:%Y-%m-%d %H:%M}" if self.new.starts else _("now on"),
        }
        if self.before is None:
            return _("%(price)s: %(rate)s per million from %(begins)s (new)") % parts
        parts["before"] = write_rate(self.before)
        return _("%(price)s: %(rate)s per million from %(begins)s (was %(before)s)") % parts


def write_rate(rate: int) -> str:
    """Write a rate in dollars, with all its digits."""
    return BudgetUnit.MONEY.write(rate)


@transact
def load_prices(*, rows: Collection[NewPrice], dry_run: bool = False) -> list[PriceChange]:
    """Load prices, all or none, and return the changes; `dry_run` rolls back."""
    now = timezone.now()
    changes = [change for row in rows if (change := _load_price(row, now))]
    transaction.set_rollback(dry_run)
    return changes


def _load_price(new: NewPrice, now: datetime) -> PriceChange | None:
    _demand_possible(new)
    starts = new.starts or now
    same = ModelPrice.objects.filter(
        model=new.model, kind=new.kind, above_tokens=new.above_tokens
    ).select_for_update()
    rows = list(same.order_by("effective_from"))
    before = [one for one in rows if one.effective_from <= starts]
    present = before[-1] if before and _is_in_force(before[-1], starts) else None
    if present is not None and present.micros_per_million == new.rate:
        return None
    if rows and starts < now - GRACE:
        raise PriceError(
            _("%(price)s: it would begin in the past, where calls were billed already.")
            % {"price": new}
        )
    later = [one.effective_from for one in rows if one.effective_from > starts]
    if (later and later[0] <= now) or (present is not None and present.effective_from == starts):
        raise PriceError(
            _("%(price)s: another price begins at that moment or has begun since.") % {"price": new}
        )
    if present is not None:
        ModelPrice.objects.filter(pk=present.pk).update(effective_to=starts)
        record_rows(ModelPrice, [present.pk])
    ModelPrice.objects.create(
        model_id=new.model,
        kind=new.kind,
        micros_per_million=new.rate,
        above_tokens=new.above_tokens,
        effective_from=starts,
        effective_to=later[0] if later else None,
        source=new.source[:200],
    )
    return PriceChange(new, None if present is None else present.micros_per_million)


def _is_in_force(price: ModelPrice, at: datetime) -> bool:
    return price.effective_to is None or price.effective_to > at


def find_next_start(
    *, model: str, kind: str, above_tokens: int, after: datetime
) -> datetime | None:
    """Return when the first price of this kind that begins later than a moment begins."""
    same = ModelPrice.objects.filter(model=model, kind=kind, above_tokens=above_tokens)
    later = same.filter(effective_from__gt=after).order_by("effective_from")
    return later.values_list("effective_from", flat=True).first()


@transact
def withdraw_price(*, price_id: int) -> None:
    """Delete a price that has not begun; the one before it stays in force in its place."""
    price = ModelPrice.objects.select_for_update(of=("self",)).get(pk=price_id)
    if price.effective_from <= timezone.now():
        raise PriceError(
            _("%(price)s: it has begun, and calls were billed with it.") % {"price": price}
        )
    same = {"model": price.model_id, "kind": price.kind, "above_tokens": price.above_tokens}
    before = ModelPrice.objects.select_for_update(of=("self",)).filter(
        effective_to=price.effective_from, **same
    )
    ends, kept = price.effective_to, before.first()
    price.delete()
    if kept is not None:
        kept.effective_to = ends
        kept.save(update_fields=["effective_to"])


def _demand_possible(new: NewPrice) -> None:
    if new.kind not in ModelPrice.Kind.values:
        raise PriceError(
            _("%(price)s: there is no such kind; there are %(kinds)s.")
            % {"price": new, "kinds": ", ".join(ModelPrice.Kind)}
        )
    if not ApiModel.objects.filter(pk=new.model).exists():
        raise PriceError(
            _("%(price)s: the catalogue has no such model; run %(command)s.")
            % {"price": new, "command": "manage.py prices refresh"}
        )
    if not 0 <= new.rate <= MOST_RATE or not 0 <= new.above_tokens < 2**31:
        raise PriceError(_("%(price)s: the price or its tier is not possible.") % {"price": new})


@transact
def refresh_models(*, facts: Collection[ModelFacts], dry_run: bool = False) -> list[str]:
    """Store what the API reports of models, and return the changes as texts."""
    changes = []
    for model in facts:
        row = ApiModel.objects.select_for_update().filter(pk=model.id).first()
        if row is None:
            changes += _add_model(model)
        else:
            changes += _update_model(row, model)
    transaction.set_rollback(dry_run)
    return changes


def _add_model(model: ModelFacts) -> list[str]:
    if not model.window or not model.max_output:
        return []
    ApiModel.objects.create(
        id=model.id[:100],
        window=model.window,
        max_output=model.max_output,
        thinking=model.thinking,
        lifecycle=model.lifecycle[:12],
        retires_at=model.retires_at,
        is_enabled=False,
    )
    return [f"{model.id}: new, switched off until it has prices"]


def _update_model(row: ApiModel, model: ModelFacts) -> list[str]:
    found = []
    for name in _FACTS:
        before, after = getattr(row, name), getattr(model, name)
        # A value that the API does not report is kept, except the date of retirement.
        if after == before or (after is None and name != "retires_at"):
            continue
        setattr(row, name, after)
        found.append(f"{row.pk}: {name} {before or 'unknown'} -> {after}")
    if found:
        row.save(update_fields=list(_FACTS))
    return found
