"""How much effort the model puts into the answers of a conversation; empty: as the site says."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("conversations", "0024_repair")]

    operations = [
        # With a default in the database: what ran before goes on adding rows.
        migrations.AddField(
            model_name="conversation",
            name="effort",
            field=models.CharField(
                blank=True,
                choices=[
                    ("low", "low"), ("medium", "medium"), ("high", "high"),
                    ("xhigh", "very high"), ("max", "maximum"),
                ],
                db_default="",
                default="",
                max_length=6,
            ),
        ),
    ]
