"""Repairs among the kinds of transformations, and the id of a tool call that could not be kept."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0023_page_version"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="transformation",
            name="transformation_shrinks",
        ),
        migrations.AddField(
            model_name="toolcall",
            name="given_id",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AlterField(
            model_name="transformation",
            name="kind",
            field=models.CharField(
                choices=[
                    ("ingest", "ingest"),
                    ("compaction", "compaction"),
                    ("rounds", "rounds"),
                    ("summary", "summary"),
                    ("trim", "trim"),
                    ("shrink", "shrink"),
                    ("rebind", "rebind"),
                    ("repair", "repair"),
                    ("restore", "restore"),
                    ("clearing", "clearing by the API"),
                ],
                max_length=12,
            ),
        ),
        migrations.AddConstraint(
            model_name="transformation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("kind", "repair"),
                    ("kind", "restore"),
                    models.Q(("actor__isnull", False), ("kind", "summary")),
                    models.Q(("bytes_after__lt", models.F("bytes_before")), ("outcome", "applied")),
                    models.Q(models.Q(("outcome", "applied"), _negated=True), ("edits", "[]")),
                    _connector="OR",
                ),
                name="transformation_shrinks",
            ),
        ),
    ]
