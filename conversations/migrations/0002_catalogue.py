"""Seed the catalogue and the price book; prices are dated rows, never constants."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import migrations

#: id, released, window, max output, thinking, then micro-dollars per million tokens:
#: input, output, cache write 5m, cache write 1h (None: not offered), cache read.
M = 1_000_000
MODELS = [
    ("claude-fable-5-2", "2026-11-09", M, 128_000, "always", 8 * M, 40 * M, 10 * M, None, 200_000),
    ("claude-fable-5-1", "2026-08-31", M, 128_000, "always", 10 * M, 50 * M, 12_500_000, 20 * M, 250_000),
    ("claude-opus-5-5", "2026-09-23", M, 128_000, "always", 4 * M, 20 * M, 5 * M, 8 * M, 200_000),
    ("claude-sonnet-5-5", "2026-09-01", M, 128_000, "adaptive", 2 * M, 10 * M, 2_500_000, 4 * M, 100_000),
    ("claude-haiku-5-5", "2026-10-07", M, 128_000, "adaptive", 100_000, 500_000, 125_000, 200_000, 10_000),
    ("claude-fable-5", "2026-06-09", M, 128_000, "always", 10 * M, 50 * M, 12_500_000, 20 * M, M),
    ("claude-opus-5", "2026-07-24", M, 128_000, "adaptive", 5 * M, 25 * M, 6_250_000, 10 * M, 500_000),
    ("claude-sonnet-5", "2026-06-30", M, 128_000, "adaptive", 2 * M, 10 * M, 2_500_000, 4 * M, 200_000),
    ("claude-opus-4-8", "2026-01-01", M, 128_000, "adaptive", 5 * M, 25 * M, 6_250_000, 10 * M, 500_000),
    ("claude-opus-4-7", "2026-01-01", M, 128_000, "adaptive", 5 * M, 25 * M, 6_250_000, 10 * M, 500_000),
    ("claude-opus-4-6", "2026-01-01", M, 128_000, "adaptive", 5 * M, 25 * M, 6_250_000, 10 * M, 500_000),
    ("claude-sonnet-4-6", "2026-01-01", M, 128_000, "adaptive", 3 * M, 15 * M, 3_750_000, 6 * M, 300_000),
    ("claude-haiku-4-5", "2025-10-01", 200_000, 64_000, "extended", M, 5 * M, 1_250_000, 2 * M, 100_000),
    ("claude-sonnet-4-5", "2025-09-29", 200_000, 64_000, "extended", 3 * M, 15 * M, 3_750_000, 6 * M, 300_000),
    ("claude-opus-4-5", "2025-11-24", 200_000, 64_000, "extended", 5 * M, 25 * M, 6_250_000, 10 * M, 500_000),
]
KINDS = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read")
#: Prompts above 100,000 tokens move every rate of this model.
TIERS = [("claude-haiku-5-5", 100_000, (500_000, 2_500_000, 625_000, M, 50_000))]


def seed(apps, schema_editor):
    ApiModel = apps.get_model("conversations", "ApiModel")
    ModelPrice = apps.get_model("conversations", "ModelPrice")
    released = {}
    for id, date, window, output, thinking, *rates in MODELS:
        ApiModel.objects.create(id=id, window=window, max_output=output, thinking=thinking)
        released[id] = datetime.fromisoformat(date).replace(tzinfo=UTC)
        put(ModelPrice, id, 0, rates, released[id])
    for id, above, rates in TIERS:
        put(ModelPrice, id, above, rates, released[id])


def put(ModelPrice, model, above, rates, since):
    for kind, rate in zip(KINDS, rates, strict=True):
        if rate is not None:
            ModelPrice.objects.create(
                model_id=model,
                kind=kind,
                micros_per_million=rate,
                above_tokens=above,
                effective_from=since,
                source="published price list, November 2026",
            )


class Migration(migrations.Migration):
    dependencies = [("conversations", "0001_initial")]
    operations = [migrations.RunPython(seed, migrations.RunPython.noop)]
