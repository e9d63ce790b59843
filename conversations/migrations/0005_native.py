"""Say which models the API clears tool results for, and which it compacts with on demand."""

from __future__ import annotations

from django.db import migrations, models

#: Models with context editing, and those of them with on-demand compaction.
COMPACTS = (
    "claude-fable-5-1", "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5",
    "claude-fable-5", "claude-opus-5", "claude-sonnet-5", "claude-opus-4-8", "claude-opus-4-7",
    "claude-opus-4-6", "claude-sonnet-4-6",
)  # fmt: skip
CLEARS = (
    *COMPACTS, "claude-fable-5-2", "claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5",
)  # fmt: skip


def say(apps, schema_editor):
    rows = apps.get_model("conversations", "ApiModel").objects
    rows.filter(pk__in=CLEARS).update(clears=True)
    rows.filter(pk__in=COMPACTS).update(compacts=True)


class Migration(migrations.Migration):
    dependencies = [("conversations", "0004_pins")]
    operations = [
        migrations.AddField(
            "apimodel",
            "clears",
            models.BooleanField(
                "clears tool results",
                default=False,
                help_text="Whether the API clears old tool results for it (context editing).",
            ),
        ),
        migrations.AddField(
            "apimodel",
            "compacts",
            models.BooleanField(
                "compacts on demand",
                default=False,
                help_text="Whether the API compacts conversations with it when it is asked to.",
            ),
        ),
        migrations.RunPython(say, migrations.RunPython.noop),
    ]
