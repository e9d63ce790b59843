"""Prices of models at a moment."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Q, QuerySet
from django.utils import timezone

from conversations.agent.prices import PriceList
from conversations.log.columns import read_columns
from conversations.log.settings_version import cached_by_settings_version, may_have_rows
from conversations.models import ApiModel, ModelPrice


def load_price_list(model: str, at: datetime) -> PriceList:
    """Return the prices in force; looking up a kind without a price raises PriceMissing."""
    return build_price_list(
        model,
        (
            (key, above, kind, micros)
            for key, above, kind, micros, begins, ends in _list_prices(model)
            if begins <= at and (ends is None or ends > at)
        ),
    )


def build_price_list(model: str, rows: Iterable[tuple[int, int, str, int]]) -> PriceList:
    """Build a price list of rows: id, size of prompt above which it applies, kind, rate."""
    tiers: dict[int, dict[str, int]] = {}
    ids = []
    for key, above, kind, micros in rows:
        tiers.setdefault(above, {})[kind] = micros
        ids.append(key)
    return PriceList(model, tuple(tiers.items()), tuple(ids))


@cached_by_settings_version
def _list_prices(model: str) -> tuple[tuple[int, int, str, int, datetime, datetime | None], ...]:
    """Return every price that a model has had."""
    rows = ModelPrice.objects.filter(model_id=model)
    names = ("above_tokens", "kind", "micros_per_million", "effective_from", "effective_to")
    return tuple(rows.values_list("pk", *names))


def filter_models_of(owner_id: int) -> QuerySet[ApiModel]:
    """Return the enabled models that the person may use: for everybody, or for their groups."""
    is_theirs = Q(groups=None) | Q(groups__user=owner_id)
    return ApiModel.objects.filter(is_theirs, is_enabled=True).distinct().order_by("pk")


@cached_by_settings_version
def find_enabled_model(model: str) -> ApiModel | None:
    """Return a model of the catalogue that the site may use."""
    return ApiModel.objects.filter(pk=model, is_enabled=True).first()


@cached_by_settings_version
def find_window(model: str) -> int | None:
    """Return the context window of a model of the catalogue, in tokens."""
    return ApiModel.objects.filter(pk=model).values_list("window", flat=True).first()


def find_usable_model(owner_id: int, model: str) -> ApiModel | None:
    """Return a model of the catalogue that the person may use."""
    if not may_have_rows(ApiModel.groups.through):
        return find_enabled_model(model)
    return _find_model_of(owner_id, model)


@cached_by_settings_version
def _find_model_of(owner_id: int, model: str) -> ApiModel | None:
    return filter_models_of(owner_id).filter(pk=model).first()


def filter_prices_at(at: datetime) -> QuerySet[ModelPrice]:
    """Return the price rows in force."""
    is_open = Q(effective_to=None) | Q(effective_to__gt=at)
    return ModelPrice.objects.filter(is_open, effective_from__lte=at)


def list_token_prices(at: datetime) -> dict[str, tuple[int | None, int | None]]:
    """Return the prices of short prompts and of answers by model, in micro-dollars per million."""
    rows = filter_prices_at(at).filter(above_tokens=0, kind__in=("input", "output"))
    found: dict[str, dict[str, int]] = {}
    for model, kind, micros in rows.values_list("model_id", "kind", "micros_per_million"):
        found.setdefault(model, {})[kind] = micros
    return {name: (row.get("input"), row.get("output")) for name, row in found.items()}


def find_unpriced_models() -> dict[str, list[str]]:
    """Return the enabled models that lack a price, each with the kinds it lacks."""
    kinds: dict[str, set[str]] = {}
    for row in filter_prices_at(timezone.now()).filter(above_tokens=0):
        kinds.setdefault(row.model_id, set()).add(row.kind)
    needed = ("input", "output", "cache_write_5m", "cache_read")
    names = ApiModel.objects.filter(is_enabled=True).order_by("pk").values_list("pk", flat=True)
    missing = {name: [k for k in needed if k not in kinds.get(name, set())] for name in names}
    return {name: lacking for name, lacking in missing.items() if lacking}


def find_small_windows(least: int) -> list[tuple[str, int]]:
    """Return the enabled models whose window is below `least` tokens, and their windows."""
    rows = ApiModel.objects.filter(is_enabled=True, window__lt=least).order_by("pk")
    return list(rows.values_list("pk", "window"))


def list_enabled_models() -> set[str]:
    """Return the ids of the models that people may choose."""
    return set(ApiModel.objects.filter(is_enabled=True).values_list("pk", flat=True))


def has_catalogue() -> bool:
    """Return whether the tables are those of this version, which a migration may yet make."""
    columns = read_columns()
    return all(
        {field.column for field in model._meta.local_fields}
        <= columns.get(model._meta.db_table, set())
        for model in (ApiModel, ModelPrice)
    )
