"""Searches of the web: the choice of a conversation, and their price on every model of the seed."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import migrations, models

#: Micro-dollars per million searches: ten dollars a thousand.
RATE = 10_000 * 1_000_000
MODELS = (
    *("claude-fable-5-2", "claude-fable-5-1", "claude-opus-5-5", "claude-sonnet-5-5"),
    *("claude-haiku-5-5", "claude-fable-5", "claude-opus-5", "claude-sonnet-5", "claude-opus-4-8"),
    *("claude-opus-4-7", "claude-opus-4-6", "claude-sonnet-4-6", "claude-haiku-4-5"),
    *("claude-sonnet-4-5", "claude-opus-4-5"),
)
KINDS = ("input", "output", "cache_write_5m", "cache_write_1h", "cache_read", "web_search")


def seed(apps, schema_editor):
    ApiModel = apps.get_model("conversations", "ApiModel")
    ModelPrice = apps.get_model("conversations", "ModelPrice")
    present = ApiModel.objects.filter(pk__in=MODELS).values_list("pk", flat=True)
    ModelPrice.objects.bulk_create(
        ModelPrice(
            model_id=model,
            kind="web_search",
            micros_per_million=RATE,
            effective_from=datetime(2026, 1, 1, tzinfo=UTC),
            source="published price list, November 2026",
        )
        for model in sorted(present)
    )


class Migration(migrations.Migration):
    dependencies = [("conversations", "0019_forks")]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="web_search",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "off"),
                    ("alone", "on, and nothing private is read"),
                    ("beside", "on, beside private data"),
                ],
                default="",
                max_length=6,
            ),
        ),
        migrations.AlterField(
            model_name="modelprice",
            name="kind",
            field=models.CharField(
                choices=[(kind, kind.replace("_", " ").title()) for kind in KINDS], max_length=14
            ),
        ),
        migrations.RunPython(seed, migrations.RunPython.noop),
    ]
